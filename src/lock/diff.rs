//! Compares two locks, or a lock with the names and digests in a receipt: items, versions of one
//! thing, packages and their changelogs.

use landfall_content::BlobRead;
use landfall_item::lockfile::{Endpoint, Lock};
use landfall_item::{LockedItem, LockedPackageSet, PackageSummary, kind_named};
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef, TagVersion, locked, unpoisoned};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::thread;

/// One side of a comparison: items by kind and name.
pub(crate) struct DiffSide<'a>(BTreeMap<(EntryKind, Cow<'a, str>), DiffItem<'a>>);

struct DiffItem<'a> {
    digest: &'a Digest,
    /// The locked item; `None` if only its digest is known.
    item: Option<LockedItem<'a>>,
}

impl<'a> DiffSide<'a> {
    /// The items of a lock.
    pub(crate) fn lock(lock: &'a Lock) -> DiffSide<'a> {
        let items = lock.items().map(|item| {
            let value = DiffItem {
                digest: item.digest(),
                item: Some(item),
            };
            ((item.kind(), item.name()), value)
        });
        DiffSide(items.collect())
    }

    /// Items of which only name and digest are known, such as those in a receipt.
    pub(crate) fn named(items: impl IntoIterator<Item = (&'a str, &'a Digest)>) -> DiffSide<'a> {
        let items = items.into_iter().map(|(name, digest)| {
            let value = DiffItem { digest, item: None };
            ((kind_named(name), name.into()), value)
        });
        DiffSide(items.collect())
    }
}

/// Returns the differences between two locks, sorted by kind and name.
pub(crate) fn diff(old: &Lock, new: &Lock) -> Vec<LockChange> {
    diff_sides(&DiffSide::lock(old), &DiffSide::lock(new))
}

/// Returns the differences between two sides, sorted by kind and name. For an item that both sides
/// have, differences in parts and referrers are found only if both sides are locks.
pub(crate) fn diff_sides(
    DiffSide(old): &DiffSide<'_>,
    DiffSide(new): &DiffSide<'_>,
) -> Vec<LockChange> {
    let mut changes = Vec::new();
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for key in names {
        let before = old.get(key);
        let after = new.get(key);
        let items = (
            before.and_then(|held| held.item),
            after.and_then(|held| held.item),
        );
        let is_changed = matches!(items, (Some(a), Some(b)) if lock_text(a) != lock_text(b));
        let change = match (before, after) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(a), Some(b)) if a.digest != b.digest => "moved",
            (Some(_), Some(_)) if is_changed => "changed",
            _ => continue,
        };
        // A receipt lists no referrers, so every referrer of the other side would look new or gone.
        let has_referrers = before.is_none_or(|held| held.item.is_some())
            && after.is_none_or(|held| held.item.is_some());
        let (old_referrers, new_referrers) = if has_referrers {
            (referrers(items.0), referrers(items.1))
        } else {
            Default::default()
        };
        changes.push(LockChange {
            from: before.map(|held| held.digest.clone()),
            to: after.map(|held| held.digest.clone()),
            new_referrers: new_referrers.difference(&old_referrers).cloned().collect(),
            gone_referrers: old_referrers.difference(&new_referrers).cloned().collect(),
            packages: match items {
                (Some(before), Some(after)) => differences(before, after),
                _ => Vec::new(),
            },
            ..LockChange::new(key.0, &key.1, change)
        });
    }
    pair(&mut changes);
    changes
}

/// An endpoint that only one of two locks has, or whose reasons or roles differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EndpointChange {
    /// `added`, `removed`, or `changed`.
    pub change: &'static str,
    /// The endpoint as the new lock has it; a removed one as the old lock has it.
    #[serde(flatten)]
    pub endpoint: Endpoint,
}

/// Returns the differences between the endpoints of two locks, sorted.
pub(crate) fn diff_endpoints(old: &Lock, new: &Lock) -> Vec<EndpointChange> {
    let mut old = endpoints_by_address(old);
    let mut changes = Vec::new();
    for (address, endpoint) in endpoints_by_address(new) {
        let change = match old.remove(&address) {
            None => "added",
            Some(before) if before != endpoint => "changed",
            Some(_) => continue,
        };
        changes.push(EndpointChange { change, endpoint });
    }
    changes.extend(old.into_values().map(|endpoint| EndpointChange {
        change: "removed",
        endpoint,
    }));
    changes.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
    changes
}

fn endpoints_by_address(lock: &Lock) -> BTreeMap<(String, u16), Endpoint> {
    lock.endpoints
        .iter()
        .map(|one| ((one.host.clone(), one.port), one.clone()))
        .collect()
}

/// The text of an item in the lock file, which contains all its parts.
fn lock_text(item: LockedItem<'_>) -> String {
    let mut text = String::new();
    // writing to a String cannot fail
    let _ = item.write(&mut text);
    text
}

fn referrers(item: Option<LockedItem<'_>>) -> BTreeSet<Digest> {
    let referrers = item.map(|item| item.entry().referrers).unwrap_or_default();
    referrers
        .into_iter()
        .map(|referrer| referrer.descriptor.digest)
        .collect()
}

// The differences between two locks, as reports list them.

/// One difference between two locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LockChange {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name of the item in the lock.
    pub name: String,
    /// `added`, `removed`, `moved` (another digest), `changed` (the same digest, other fields in
    /// the lock), or `gone` (upstream lacks it now; the old pin is kept).
    pub change: &'static str,
    /// For an added item: the name of the removed version that it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// For a removed item: the name of the added version that replaces it.
    #[serde(rename = "replacedBy", skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// `up` or `down`: how the version differs from that of the replaced item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'static str>,
    /// The digest in the old lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The digest in the new lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// The digests of referrers that only the new lock has.
    #[serde(rename = "newReferrers", skip_serializing_if = "Vec::is_empty")]
    pub new_referrers: Vec<Digest>,
    /// The digests of referrers that only the old lock has.
    #[serde(rename = "goneReferrers", skip_serializing_if = "Vec::is_empty")]
    pub gone_referrers: Vec<Digest>,
    /// The differences between the packages, if the item is a set of packages in both locks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageChange>,
}

/// A package that differs between two versions of a set, or that only one of them has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct PackageChange {
    /// The name of the package.
    pub name: String,
    /// The architecture; `all` or `noarch` for a package of every architecture.
    pub arch: String,
    /// `up`, `down`, `moved` (the same version, another digest), `added` or `removed`.
    pub change: &'static str,
    /// The version in the old set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version in the new set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The size of the new package in bytes, or of the removed one.
    pub bytes: u64,
    /// The digest of the new package, or of the removed one.
    pub digest: Digest,
    /// The first lines of the changelog of the new version, if it was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changelog: Vec<String>,
}

impl LockChange {
    pub(super) fn new(kind: EntryKind, name: &str, change: &'static str) -> LockChange {
        LockChange {
            kind,
            name: name.into(),
            change,
            replaces: None,
            replaced_by: None,
            version: None,
            from: None,
            to: None,
            new_referrers: Vec::new(),
            gone_referrers: Vec::new(),
            packages: Vec::new(),
        }
    }
}

// Adds changelogs of packages to a comparison of locks, if their files are available.

/// Adds the first lines of the changelog to each package that has a newer version, or another
/// digest for the same version. Packages whose files are not in `content` are skipped. Returns a
/// message for each changelog that could not be read.
pub(crate) fn add_changelogs(
    changes: &mut [LockChange],
    new: &Lock,
    content: &dyn BlobRead,
) -> Vec<String> {
    let packages = changes.iter_mut().flat_map(|change| &mut change.packages);
    let packages: Vec<_> = packages
        .filter(|package| ["up", "moved"].contains(&package.change))
        .collect();
    if packages.is_empty() {
        return Vec::new();
    }
    let by_digest: HashMap<&Digest, PackageSummary<'_>> = new
        .packages
        .iter()
        .flat_map(LockedPackageSet::packages)
        .map(|summary| (summary.digest, summary))
        .collect();
    // A package is unpacked up to its changelog, which takes CPU time, so all processors work.
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(packages.len());
    let queue = Mutex::new(packages.into_iter());
    let faults = Mutex::new(Vec::new());
    let next = || locked(&queue).next();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(package) = next() {
                    let Some(summary) = by_digest.get(&package.digest) else {
                        continue;
                    };
                    match summary.changelog(content) {
                        Ok(lines) => package.changelog = lines,
                        Err(error) => {
                            let fault = format!(
                                "the changelog of {} {} cannot be read: {error}",
                                summary.name, summary.version
                            );
                            locked(&faults).push(fault);
                        }
                    }
                }
            });
        }
    });
    let mut faults = unpoisoned(faults.into_inner());
    // the threads finish in any order, and the report must be the same each time
    faults.sort();
    faults
}

/// The kind, the source, and the shape of the version. Items that are equal in all three can be
/// versions of each other.
type VersionGroup = (EntryKind, String, String);

/// Marks removed and added items as versions of one thing. In each group, the newest removed item
/// is paired with the newest added one, the second with the second, and so on.
pub(super) fn pair(changes: &mut [LockChange]) {
    let mut groups: BTreeMap<VersionGroup, [Vec<(TagVersion, usize)>; 2]> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        let side = match change.change {
            "removed" => 0,
            "added" => 1,
            _ => continue,
        };
        if let Some((group, version)) = version_group(change.kind, &change.name) {
            groups.entry(group).or_default()[side].push((version, at));
        }
    }
    for [mut removed, mut added] in groups.into_values() {
        for side in [&mut removed, &mut added] {
            side.sort_by(|(a, _), (b, _)| b.order(a));
        }
        for ((before, old), (after, new)) in removed.into_iter().zip(added) {
            let direction = match after.order(&before) {
                Ordering::Greater => "up",
                Ordering::Less => "down",
                Ordering::Equal => continue,
            };
            let [replaced, replacing] = [old, new].map(|at| changes[at].name.clone());
            changes[old].replaced_by = Some(replacing);
            changes[new].replaces = Some(replaced);
            changes[new].version = Some(direction);
        }
    }
}

/// The group and the version of an item. An image has its version in the tag; for other kinds, the
/// whole name counts as the version, because a URL may contain it anywhere.
fn version_group(kind: EntryKind, name: &str) -> Option<(VersionGroup, TagVersion)> {
    let image: Option<ImageRef> = name.parse().ok().filter(|_| kind == EntryKind::Image);
    let (source, version) = match &image {
        Some(image) => (image.name(), image.tag.as_deref()?),
        None => (String::new(), name),
    };
    let version = TagVersion::parse(version)?;
    // the shape keeps variants apart, and versions of different shapes have no order
    Some(((kind, source, version.shape().to_owned()), version))
}

/// Returns the differences between the packages of two sets, sorted by name and architecture.
/// Packages with the same digest in both sets are left out. If several versions of a package
/// remain, the newest is compared with the newest of the other set, and so on.
pub(super) fn differences(old: LockedItem<'_>, new: LockedItem<'_>) -> Vec<PackageChange> {
    let mut names: BTreeMap<(&str, &str), [Vec<PackageSummary<'_>>; 2]> = BTreeMap::new();
    let [old, new] = [old, new].map(LockedItem::packages);
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
    use landfall_item::{LockedPackage, PackageSource};

    fn change(change: &'static str, kind: EntryKind, name: &str) -> LockChange {
        LockChange {
            change,
            kind,
            name: name.into(),
            ..LockChange::new(kind, "", "")
        }
    }

    #[test]
    fn the_newest_added_version_replaces_the_newest_removed_one_of_its_shape() {
        let image = |what, name| change(what, EntryKind::Image, name);
        let mut changes = [
            image("removed", "q.io/a:v1.9.0"),
            image("removed", "q.io/a:v1.8.0"),
            image("added", "q.io/a:v1.10.1"),
            image("removed", "q.io/b:2.0"),
            image("added", "q.io/b:1.9"),
            image("removed", "q.io/c:1.2-alpine"),
            image("added", "q.io/c:1.3"),
            image("added", "q.io/d:v1.10.1"),
            change(
                "removed",
                EntryKind::File,
                "https://h.test/v1.9/bin/linux/amd64/x",
            ),
            change(
                "removed",
                EntryKind::File,
                "https://h.test/v1.9/bin/linux/arm/x",
            ),
            change(
                "added",
                EntryKind::File,
                "https://h.test/v1.10/bin/linux/amd64/x",
            ),
        ];
        pair(&mut changes);
        let of = |at: usize| (changes[at].replaces.as_deref(), changes[at].version);
        assert_eq!(of(2), (Some("q.io/a:v1.9.0"), Some("up")));
        assert_eq!(of(4), (Some("q.io/b:2.0"), Some("down")));
        assert_eq!(
            of(10),
            (Some("https://h.test/v1.9/bin/linux/amd64/x"), Some("up"))
        );
        assert_eq!(changes[0].replaced_by.as_deref(), Some("q.io/a:v1.10.1"));
        for alone in [1, 5, 6, 7, 9] {
            assert_eq!(
                (&changes[alone].replaces, &changes[alone].replaced_by),
                (&None, &None),
                "{alone}"
            );
        }
    }

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
            module_hotfixes: false,
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
            modules: Vec::new(),
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
        let changes = differences(LockedItem::Packages(&old), LockedItem::Packages(&new))
            .into_iter()
            .map(|one| {
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
