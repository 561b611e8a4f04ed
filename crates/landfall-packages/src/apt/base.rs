//! The packages of a freshly installed system, which debootstrap would install from a suite.

use super::choose::choose;
use super::marking::AptSettings;
use super::universe::{AptPackageId, AptVersionId, RelationKind, Universe};
use std::collections::BTreeSet;

/// `Priority: required`, `important` and `standard` (Debian Policy 2.5).
const REQUIRED: u8 = 1;
const IMPORTANT: u8 = 2;
const STANDARD: u8 = 3;

/// The package that moves an installed system to a merged `/usr`, and the empty package that marks
/// a system as merged. debootstrap creates merged systems, so it installs the second package, even
/// if a relation lists the first one earlier.
const USRMERGE: (&str, &str) = ("usrmerge", "usr-is-merged");

/// The set of packages of a freshly installed system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseSystem {
    /// Essential and required packages, and apt: `debootstrap --variant=minbase`.
    Minimal,
    /// debootstrap's default, and the packages of the priority `standard`, which apt then installs.
    Standard,
}

/// Returns the name and version of every package that `system` contains when it is installed from
/// the indexes `texts`.
///
/// # Errors
/// If the indexes have no package of the priority `required`, or the `standard` packages cannot be
/// installed together.
pub fn suite_packages(
    architectures: &[String],
    texts: &[&str],
    system: BaseSystem,
) -> Result<Vec<(String, String)>, String> {
    let mut universe = Universe::new(architectures);
    // a single source, so its priority does not matter
    let source = universe.add_source(500);
    texts
        .iter()
        .for_each(|text| universe.add_index(source, text));
    let lowest_priority = if system == BaseSystem::Minimal {
        REQUIRED
    } else {
        IMPORTANT
    };
    let mut versions = bootstrap(&universe, lowest_priority);
    // without this check, the base from a vendor's repository would contain only apt, or nothing
    if !versions
        .iter()
        .any(|version| universe.offer_of(*version).priority == REQUIRED)
    {
        return Err(
            "it has no package of the priority `required`; name the suite of the \
             distribution first, or use another `base`"
                .into(),
        );
    }
    if system == BaseSystem::Standard {
        let names: Vec<String> = versions_of_priority(&universe, STANDARD)
            .iter()
            .map(|version| name_of(&universe, *version).to_owned())
            .collect();
        // apt selects the `standard` packages after debootstrap has installed `versions`
        versions
            .iter()
            .for_each(|version| universe.set_current(*version));
        // `expects_rest`: names without a package are skipped, as in debootstrap
        let settings = AptSettings {
            recommends: false,
            expects_rest: true,
        };
        versions.extend(choose(&universe, &[], &names, settings)?.versions);
    }
    Ok(versions
        .iter()
        .map(|version| {
            (
                name_of(&universe, *version).to_owned(),
                universe.offer_of(*version).version.to_owned(),
            )
        })
        .collect())
}

/// Returns the packages of the priorities from `required` to `lowest_priority`, the essential
/// packages, apt, and the dependencies of all of them. Dependencies are resolved as in debootstrap:
/// the first alternative is taken, names without a package are skipped, and versions are not
/// compared.
fn bootstrap(universe: &Universe<'_>, lowest_priority: u8) -> BTreeSet<AptVersionId> {
    let mut next: Vec<AptVersionId> = (REQUIRED..=lowest_priority)
        .flat_map(|priority| versions_of_priority(universe, priority))
        .collect();
    next.extend(
        native_versions(universe).filter(|version| universe.offer_of(*version).is_essential),
    );
    next.extend(native_version(universe, "apt"));
    let mut found: BTreeSet<AptVersionId> = next.iter().copied().collect();
    let (usrmerge, usr_is_merged) = USRMERGE;
    while let Some(version) = next.pop() {
        // `relation.or` says that another alternative of the same dependency follows. After an
        // alternative without `or`, the next one is the first of another dependency.
        let mut is_first = true;
        for relation in universe.relations_of(version) {
            let is_dependency = matches!(
                relation.kind,
                RelationKind::PreDepends | RelationKind::Depends
            );
            if is_dependency && is_first {
                let name = universe.text(relation.name);
                let instead = if name == usrmerge {
                    native_version(universe, usr_is_merged)
                } else {
                    None
                };
                let needed = instead.or_else(|| native_version(universe, name));
                next.extend(needed.filter(|needed| found.insert(*needed)));
            }
            is_first = !relation.or;
        }
    }
    found
}

/// Returns the newest version of each native package.
fn native_versions<'u>(universe: &'u Universe<'_>) -> impl Iterator<Item = AptVersionId> + use<'u> {
    let all = universe.packages.iter().filter(|known| known.arch == 0);
    all.filter_map(|known| known.versions.first().copied())
}

fn versions_of_priority(universe: &Universe<'_>, priority: u8) -> Vec<AptVersionId> {
    native_versions(universe)
        .filter(|version| universe.offer_of(*version).priority == priority)
        .collect()
}

/// Returns the newest version of the native package `name`.
fn native_version(universe: &Universe<'_>, name: &str) -> Option<AptVersionId> {
    let package: AptPackageId = universe.find(name, None)?;
    let known = &universe.packages[package as usize];
    known.versions.first().copied().filter(|_| known.arch == 0)
}

fn name_of<'t>(universe: &Universe<'t>, version: AptVersionId) -> &'t str {
    universe.text(universe.name_of(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "\
        Package: base-files\nVersion: 1\nArchitecture: amd64\nEssential: yes\nPriority: required\nPre-Depends: awk\n\n\
        Package: mawk\nVersion: 1\nArchitecture: amd64\nPriority: optional\nProvides: awk\n\n\
        Package: init-helpers\nVersion: 1\nArchitecture: all\nPriority: required\n\
        Depends: usrmerge | usr-is-merged, perl-base:any (>= 9)\n\n\
        Package: usrmerge\nVersion: 1\nArchitecture: all\nPriority: optional\nDepends: perl\n\n\
        Package: usr-is-merged\nVersion: 1\nArchitecture: all\nPriority: optional\n\n\
        Package: perl\nVersion: 1\nArchitecture: amd64\nPriority: standard\n\n\
        Package: perl-base\nVersion: 1\nArchitecture: amd64\nPriority: optional\nDepends: dpkg | gone\n\n\
        Package: dpkg\nVersion: 1\nArchitecture: amd64\nPriority: optional\n\n\
        Package: apt\nVersion: 1\nArchitecture: amd64\nPriority: optional\nDepends: keyring\nRecommends: certificates\n\n\
        Package: keyring\nVersion: 1\nArchitecture: all\nPriority: optional\n\n\
        Package: certificates\nVersion: 1\nArchitecture: all\nPriority: optional\n\n\
        Package: cron\nVersion: 1\nArchitecture: amd64\nPriority: important\n\n\
        Package: mail\nVersion: 1\nArchitecture: amd64\nPriority: standard\nDepends: gone | cron\n\n";

    fn names(system: BaseSystem) -> Vec<String> {
        let found = suite_packages(&["amd64".into()], &[INDEX], system).unwrap();
        let mut names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    }

    #[test]
    fn minimal_and_standard_systems_have_the_packages_of_debootstrap() {
        let minimal = [
            "apt",
            "base-files",
            "dpkg",
            "init-helpers",
            "keyring",
            "perl-base",
            "usr-is-merged",
        ];
        assert_eq!(names(BaseSystem::Minimal), minimal);
        let mut standard = [&minimal[..], &["cron", "mail", "perl"]].concat();
        standard.sort_unstable();
        assert_eq!(names(BaseSystem::Standard), standard);
    }

    #[test]
    fn a_suite_without_required_packages_is_rejected() {
        let index = "Package: docker-ce\nVersion: 1\nArchitecture: amd64\nPriority: optional\n\n";
        let refused = suite_packages(&["amd64".into()], &[index], BaseSystem::Minimal).unwrap_err();
        assert!(
            refused.contains("no package of the priority `required`"),
            "{refused}"
        );
    }
}
