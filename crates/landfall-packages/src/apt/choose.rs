//! Selects the packages that apt would install for a list of requests, and the packages of a
//! freshly installed system.

use super::marking::Marking;
use super::reason::{broken_relation_text, name_and_version, relation_text};
use super::request::{InstallRequest, SuitePreference};
use super::universe::{AptPackageId, AptVersionId, RelationKind, Universe};
use std::collections::BTreeSet;

pub use super::marking::AptSettings;

/// The packages that apt would install for a list of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AptSelection {
    /// The versions to install or upgrade to.
    pub versions: Vec<AptVersionId>,
    /// Dependencies that the machine must have already, because no source offers them, in the
    /// syntax of Debian relations.
    pub expected: BTreeSet<String>,
    /// The installed packages that are upgraded or removed: one line each, for people.
    pub replaced: Vec<String>,
}

/// The stack size, in bytes, of the thread that selects packages. The selection recurses into
/// dependencies, which can be hundreds of packages deep.
const STACK: usize = 256 << 20;

/// Selects packages for the requests `install`. All requested packages are marked before any
/// dependency. Then the dependencies are marked in the order of the requests, so the dependencies
/// of a request affect which alternatives the later requests get. For each source, `suites` has the
/// names of its suite.
///
/// # Errors
/// If the requests cannot be installed; the text is a chain of reasons.
pub fn choose(
    universe: &Universe<'_>,
    suites: &[Vec<String>],
    install: &[String],
    settings: AptSettings,
) -> Result<AptSelection, String> {
    // a thread of its own, because the stack of the caller's thread may be 2 MiB
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread =
            thread.spawn_scoped(scope, || choose_here(universe, suites, install, settings));
        let joined = thread
            .map_err(|error| format!("the package selection cannot start a thread: {error}"))?
            .join();
        joined.unwrap_or_else(|_| Err("the package selection ended unexpectedly".into()))
    })
}

fn choose_here(
    universe: &Universe<'_>,
    suites: &[Vec<String>],
    install: &[String],
    settings: AptSettings,
) -> Result<AptSelection, String> {
    let mut marking = Marking::new(universe, settings);
    let mut requested = Vec::new();
    let mut of_suite = Vec::new();
    for text in install {
        let request = InstallRequest::parse(text);
        let resolved = request.resolve(universe, suites)?;
        resolved
            .version
            .into_iter()
            .for_each(|version| marking.set_candidate(version));
        of_suite.extend(
            resolved
                .version
                .filter(|_| resolved.is_of_suite)
                .map(|version| (request, version)),
        );
        // the first mention of a package determines its position in the order
        if !requested.contains(&resolved.package) {
            requested.push(resolved.package);
        }
    }
    // only after all requested versions are candidates: `name=version` applies to dependencies too
    for (request, version) in of_suite {
        let is_in_suite = |version| request.is_of_suite(universe, suites, version);
        marking.prefer_from_suite(version, &mut SuitePreference::new(&is_in_suite));
    }
    // all requests are marked before any dependency, because another request may satisfy it
    requested
        .iter()
        .for_each(|package| marking.mark_requested(*package));
    requested
        .iter()
        .for_each(|package| marking.mark_dependencies(*package));
    if let Some(bad) = marking.broken().first() {
        // the reasons are collected before the resolver changes the marks that they explain
        let why = explain(universe, &marking, &requested, *bad);
        if !marking.can_resolve() {
            return Err(why);
        }
        marking.resolve();
        if !marking.broken().is_empty() {
            return Err(why);
        }
    }
    let versions = marking.needed();
    let expected = versions
        .iter()
        .flat_map(|version| marking.expected(*version))
        .map(|group| relation_text(universe, group))
        .collect();
    let replaced = replaced(universe, &marking);
    Ok(AptSelection {
        versions,
        expected,
        replaced,
    })
}

/// The installed packages that are upgraded or removed: one line each, for people.
fn replaced(universe: &Universe<'_>, marking: &Marking<'_, '_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, known) in universe.packages.iter().enumerate() {
        let Some(current) = known.current else {
            continue;
        };
        let planned = marking.planned_version(at as AptPackageId);
        if planned == Some(current) {
            continue;
        }
        let old = name_and_version(universe, current);
        let change = match planned {
            Some(new) => format!("{old} → {}", universe.offer_of(new).version),
            None => format!("{old} would be removed"),
        };
        let hold = if known.is_held {
            " (on hold: `apt-get -y` fails without `--allow-change-held-packages`)"
        } else {
            ""
        };
        lines.push(change + hold);
    }
    lines
}

/// Explains why the package `bad` is broken. Returns the first chain of reasons that exists for a
/// requested package or for `bad`. If there is none, returns the broken relation of `bad`.
fn explain(
    universe: &Universe<'_>,
    marking: &Marking<'_, '_>,
    requested: &[AptPackageId],
    bad: AptPackageId,
) -> String {
    let chain = requested
        .iter()
        .chain([&bad])
        .map(|package| marking.reasons.chain(universe, *package))
        .find(|chain| !chain.is_empty())
        .unwrap_or_else(|| {
            let relation = marking.planned_version(bad).zip(marking.unmet(bad));
            relation
                .map(|(version, group)| broken_relation_text(universe, version, group))
                .into_iter()
                .collect()
        });
    if chain.is_empty() {
        "the requested packages cannot be installed together".into()
    } else {
        chain.join("; ")
    }
}

// The packages of a freshly installed system, which debootstrap would install from a suite.

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

    fn outcome(index: &str, install: &[&str]) -> Result<usize, String> {
        let mut universe = Universe::new(&["amd64".to_owned()]);
        let source = universe.add_source(500);
        universe.add_index(source, index);
        let install: Vec<String> = install.iter().map(|name| (*name).to_owned()).collect();
        let settings = AptSettings {
            recommends: false,
            expects_rest: false,
        };
        choose(&universe, &[], &install, settings).map(|choice| choice.versions.len())
    }

    fn package(name: &str, fields: &str) -> String {
        format!(
            "Package: {name}\nVersion: 1\nArchitecture: amd64\nFilename: {name}.deb\nSize: 1\nSHA256: {:064}\n{fields}\n",
            0
        )
    }

    #[test]
    fn a_package_on_hold_that_would_be_replaced_is_marked() {
        let index = [package("a", ""), package("b", "")].concat();
        let index = index.replace("Version: 1\n", "Version: 2\n");
        let installed = |name: &str, selection: &str| {
            format!(
                "Package: {name}\nStatus: {selection} ok installed\nVersion: 1\nArchitecture: amd64\n\n"
            )
        };
        let status = [installed("a", "hold"), installed("b", "install")].concat();
        let mut universe = Universe::new(&["amd64".to_owned()]);
        let source = universe.add_source(500);
        universe.add_index(source, &index);
        universe.add_installed(&status);
        let settings = AptSettings {
            recommends: false,
            expects_rest: false,
        };
        let install = ["a".to_owned(), "b".to_owned()];
        let choice = choose(&universe, &[], &install, settings).unwrap();
        let held = "a 1 → 2 (on hold: `apt-get -y` fails without `--allow-change-held-packages`)";
        assert_eq!(choice.replaced, [held, "b 1 → 2"]);
    }

    fn names(count: usize, name: impl Fn(usize) -> String, between: &str) -> String {
        (0..count).map(name).collect::<Vec<_>>().join(between)
    }

    /// The pigeonhole problem: each pigeon needs a hole of its own, and there is one hole too few.
    /// apt fails quickly, because it does not try all combinations. landfall must fail quickly too.
    #[test]
    fn packages_that_exclude_each_other_fail_quickly() {
        let count = 20;
        let mut index = String::new();
        for pigeon in 0..count {
            let holes = names(count - 1, |hole| format!("p{pigeon}h{hole}"), " | ");
            index += &package(&format!("p{pigeon}"), &format!("Depends: {holes}\n"));
            for hole in 0..count - 1 {
                let others = names(count, |other| format!("p{other}h{hole}"), ", ");
                index += &package(
                    &format!("p{pigeon}h{hole}"),
                    &format!("Conflicts: {others}\n"),
                );
            }
        }
        let all: Vec<String> = (0..count).map(|pigeon| format!("p{pigeon}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        outcome(&index, &all).unwrap_err();
    }

    /// Two alternatives at each of 40 steps. Every combination of alternatives ends in a package
    /// that cannot be installed.
    #[test]
    fn alternatives_that_all_end_in_a_broken_package_fail_quickly() {
        let depth = 40;
        for end in ["Conflicts: root\n", "Depends: nothing\n", "Breaks: root\n"] {
            let mut index = package("root", "Depends: s0a | s0b\n");
            for step in 0..depth {
                let needs = format!("Depends: s{0}a | s{0}b\n", step + 1);
                let needs = if step + 1 == depth { end } else { &needs };
                index += &package(&format!("s{step}a"), needs);
                index += &package(&format!("s{step}b"), needs);
            }
            outcome(&index, &["root"]).unwrap_err();
        }
    }
}

#[cfg(test)]
mod base_tests {
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
