//! What a machine has after its system was installed: debootstrap's choice over the indexes of a
//! suite.

use super::choose::choose;
use super::marking::AptSettings;
use super::offer::{AptPackageId, AptVersionId, RelationKind};
use super::universe::Universe;
use std::collections::BTreeSet;

/// `Priority: required`, `important` and `standard` (Debian Policy 2.5).
const REQUIRED: u8 = 1;
const IMPORTANT: u8 = 2;
const STANDARD: u8 = 3;

/// The package that moves an installed system to a merged `/usr`, and the empty one that says that
/// it is merged. A system that debootstrap makes is merged from its start, so it has the latter,
/// whatever comes first in a relation.
const MERGE: (&str, &str) = ("usrmerge", "usr-is-merged");

/// Which packages the system was installed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseSystem {
    /// What is essential or required, and apt: `debootstrap --variant=minbase`.
    Minimal,
    /// All up to the priority `standard`: debootstrap's default, and on it what is standard by
    /// apt's choice.
    Standard,
}

/// Returns name and version of every package that `system` has, when it is installed from the
/// indexes `texts`.
///
/// # Errors
/// When the indexes are not those of a distribution, or what is standard cannot be installed.
pub fn suite_packages(
    architectures: &[String],
    texts: &[&str],
    system: BaseSystem,
) -> Result<Vec<(String, String)>, String> {
    let mut universe = Universe::new(architectures);
    let source = universe.source(500);
    texts.iter().for_each(|text| universe.add(source, text));
    let least = if system == BaseSystem::Minimal {
        REQUIRED
    } else {
        IMPORTANT
    };
    let mut versions = bootstrap(&universe, least);
    let is_required = |version: &AptVersionId| universe.offer_of(*version).priority == REQUIRED;
    if !versions.iter().any(is_required) {
        return Err(
            "it has no package of the priority `required`; name the suite of the \
             distribution first, or take another `base`"
                .into(),
        );
    }
    if system == BaseSystem::Standard {
        let names = of_priority(&universe, STANDARD);
        let names: Vec<String> = names
            .iter()
            .map(|version| name_of(&universe, *version).to_owned())
            .collect();
        versions
            .iter()
            .for_each(|version| universe.set_current(*version));
        let settings = AptSettings {
            recommends: false,
            expects_rest: true,
        };
        versions.extend(choose(&universe, &[], &names, settings)?.versions);
    }
    let named = |version: &AptVersionId| {
        (
            name_of(&universe, *version).to_owned(),
            universe.offer_of(*version).version.to_owned(),
        )
    };
    Ok(versions.iter().map(named).collect())
}

/// The packages up to the priority `least`, apt, and what these need as debootstrap resolves it: of
/// alternatives the first, names that no package has are left out, and versions are not compared.
fn bootstrap(universe: &Universe<'_>, least: u8) -> BTreeSet<AptVersionId> {
    let mut next: Vec<AptVersionId> = (REQUIRED..=least)
        .flat_map(|priority| of_priority(universe, priority))
        .collect();
    next.extend(native(universe).filter(|version| universe.offer_of(*version).is_essential));
    next.extend(real(universe, "apt"));
    let mut found: BTreeSet<AptVersionId> = next.iter().copied().collect();
    let (merge, merged) = MERGE;
    while let Some(version) = next.pop() {
        let mut is_first = true;
        for relation in universe.relations_of(version) {
            let is_need = matches!(
                relation.kind,
                RelationKind::PreDepends | RelationKind::Depends
            );
            if is_need && is_first {
                let name = universe.text(relation.name);
                let instead = if name == merge {
                    real(universe, merged)
                } else {
                    None
                };
                let needed = instead.or_else(|| real(universe, name));
                next.extend(needed.filter(|needed| found.insert(*needed)));
            }
            is_first = !relation.or;
        }
    }
    found
}

/// The newest version of each native package.
fn native<'u>(universe: &'u Universe<'_>) -> impl Iterator<Item = AptVersionId> + use<'u> {
    let all = universe.packages.iter().filter(|known| known.arch == 0);
    all.filter_map(|known| known.versions.first().copied())
}

fn of_priority(universe: &Universe<'_>, priority: u8) -> Vec<AptVersionId> {
    native(universe)
        .filter(|version| universe.offer_of(*version).priority == priority)
        .collect()
}

/// The newest version of the native package `name`.
fn real(universe: &Universe<'_>, name: &str) -> Option<AptVersionId> {
    let package: AptPackageId = universe.find(name, None)?;
    let known = &universe.packages[package as usize];
    known.versions.first().copied().filter(|_| known.arch == 0)
}

fn name_of<'t>(universe: &Universe<'t>, version: AptVersionId) -> &'t str {
    universe.text(universe.packages[universe.offer_of(version).package as usize].name)
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
    fn a_minimal_system_is_what_debootstrap_installs() {
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
    fn a_suite_that_is_no_distribution_is_refused() {
        let index = "Package: docker-ce\nVersion: 1\nArchitecture: amd64\nPriority: optional\n\n";
        let refused = suite_packages(&["amd64".into()], &[index], BaseSystem::Minimal).unwrap_err();
        assert!(
            refused.contains("no package of the priority `required`"),
            "{refused}"
        );
    }
}
