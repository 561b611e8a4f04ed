//! Compares the packages of two sets by name and architecture.

use super::change::PackageChange;
use landfall_item::{LockedItem, LockedPackageSet, PackageSummary};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Returns the differences between the packages of two sets, sorted by name and architecture.
/// Packages with the same digest in both sets are left out. If several versions of a package
/// remain, the newest is compared with the newest of the other set, and so on.
pub(super) fn differences(old: &dyn LockedItem, new: &dyn LockedItem) -> Vec<PackageChange> {
    let mut names: BTreeMap<(&str, &str), [Vec<PackageSummary<'_>>; 2]> = BTreeMap::new();
    let [old, new] = [old, new].map(|item| {
        item.as_package_set()
            .map(LockedPackageSet::packages)
            .unwrap_or_default()
    });
    for (side, packages) in [&old, &new].into_iter().enumerate() {
        for package in packages {
            let same = &mut names.entry((package.name, package.arch)).or_default()[side];
            // two sources of a set may offer the same package
            if !same.iter().any(|other| other.digest == package.digest) {
                same.push(*package);
            }
        }
    }
    names
        .into_values()
        .flat_map(|[old, new]| pair_by_version(old, new))
        .collect()
}

/// Compares the versions of one package. Those with the same digest in both sets are left out.
fn pair_by_version<'a>(
    mut old: Vec<PackageSummary<'a>>,
    mut new: Vec<PackageSummary<'a>>,
) -> Vec<PackageChange> {
    let all_old = old.clone();
    old.retain(|one| !new.iter().any(|other| other.digest == one.digest));
    new.retain(|one| !all_old.iter().any(|other| other.digest == one.digest));
    for side in [&mut old, &mut new] {
        // `order` follows the rules of apt or yum, so an epoch counts before the version
        side.sort_by(|a, b| (a.order)(b.version, a.version));
    }
    (0..old.len().max(new.len()))
        .filter_map(|at| package_change(old.get(at), new.get(at)))
        .collect()
}

fn package_change(
    from: Option<&PackageSummary<'_>>,
    to: Option<&PackageSummary<'_>>,
) -> Option<PackageChange> {
    let package = to.or(from)?;
    let change = match (from, to) {
        (None, _) => "added",
        (_, None) => "removed",
        (Some(from), Some(to)) => match (to.order)(to.version, from.version) {
            Ordering::Greater => "up",
            Ordering::Less => "down",
            Ordering::Equal => "moved",
        },
    };
    Some(PackageChange {
        name: package.name.into(),
        arch: package.arch.into(),
        change,
        from: from.map(|one| one.version.to_owned()),
        to: to.map(|one| one.version.to_owned()),
        bytes: package.size,
        digest: package.digest.clone(),
        changelog: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::{LockedPackage, LockedPackageSet, PackageSource};
    use landfall_model::Digest;

    fn set(packages: &[(&str, &str)]) -> LockedPackageSet {
        let package = |(name, version): &(&str, &str)| LockedPackage {
            digest: Digest::sha256(format!("{name}{version}").as_bytes()),
            size: 1,
            name: (*name).into(),
            version: version.trim_end_matches('!').into(),
            arch: "amd64".into(),
            path: "p".into(),
            url: "https://h.test/p".into(),
        };
        let source = PackageSource {
            url: "https://h.test".into(),
            suite: "s".into(),
            components: Vec::new(),
            targets: Vec::new(),
            by_hash: false,
            snapshot: None,
            date: None,
            valid_until: None,
            signed_by: String::new(),
            key: String::new(),
            indexes: Vec::new(),
            packages: packages.iter().map(package).collect(),
        };
        LockedPackageSet {
            name: "apt:x".into(),
            digest: Digest::sha256(b""),
            architectures: Vec::new(),
            install: Vec::new(),
            recommends: false,
            index: landfall_item::OfferedIndex::default(),
            base: Vec::new(),
            expected: Vec::new(),
            // listed twice: a package in two sources must count once
            sources: vec![source.clone(), source],
        }
    }

    #[test]
    fn the_newest_of_several_versions_is_compared_with_the_newest() {
        let old = set(&[
            ("a", "1:1.9"),
            ("a", "2.0"),
            ("b", "1.0"),
            ("c", "1.0"),
            ("d", "1"),
            ("e", "1"),
        ]);
        let new = set(&[
            ("a", "1:1.10"),
            ("b", "1.0~rc1"),
            ("b", "0.9"),
            ("c", "1.0!"),
            ("d", "1"),
            ("f", "1"),
        ]);
        let changes = differences(&old, &new).into_iter().map(|one| {
            let text = |version: Option<String>| version.unwrap_or_else(|| "-".into());
            format!(
                "{} {} {} {}",
                one.change,
                one.name,
                text(one.from),
                text(one.to)
            )
        });
        let expected = [
            "up a 1:1.9 1:1.10",
            "removed a 2.0 -",
            "down b 1.0 1.0~rc1",
            "added b - 0.9",
            "moved c 1.0 1.0",
            "removed e 1 -",
            "added f - 1",
        ];
        assert_eq!(changes.collect::<Vec<_>>(), expected);
    }
}
