//! Whether a set contains a package that a script installs with apt or dnf.

use super::locked::{LockedPackage, LockedPackageSet};
use landfall_model::{Wildcards, split_optional};
use landfall_packages::yum::{self, RpmPin};
use std::collections::BTreeSet;

/// Whether a machine can install a package from a set of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageAvailability {
    /// The set contains the package. Or the package was requested, and the machines already have
    /// it or get another package that replaces it.
    Carried,
    /// No source has the package, so the machines are expected to have it installed.
    Expected,
    /// The set contains the package, but only in these versions or suites.
    OtherVersions(String),
    /// The set contains the package in these suites, and the requested suite may be another name of
    /// one of them.
    OtherSuiteName(String),
    /// The set does not contain the package.
    NotCarried,
}

/// Looks up in `set` the package that `word` selects on the command line of `manager`. `None` if
/// the set is for another package manager.
pub(super) fn availability(
    set: &LockedPackageSet,
    manager: &str,
    word: &str,
) -> Option<PackageAvailability> {
    match (manager, set.is_yum()) {
        ("apt", false) => Some(apt_availability(set, word)),
        ("yum", true) => Some(yum_availability(set, word)),
        _ => None,
    }
}

/// Looks up a package by a word of `apt-get install`: `name[:arch][/suite][=version]`, optionally
/// with a `+` at the end, which says that the package is to be installed.
fn apt_availability(set: &LockedPackageSet, word: &str) -> PackageAvailability {
    let exact = exact_availability(set, word);
    match word.strip_suffix('+') {
        // a package such as `g++` takes precedence (apt-get(8))
        Some(plain) if exact == PackageAvailability::NotCarried => exact_availability(set, plain),
        _ => exact,
    }
}

/// Looks up a package by `name[:arch][/suite][=version]`.
fn exact_availability(set: &LockedPackageSet, word: &str) -> PackageAvailability {
    let (rest, version) = split_optional(word, '=');
    let (qualified, suite) = split_optional(rest, '/');
    let (name, arch) = split_optional(qualified, ':');
    let mut found: Vec<(&str, &str)> = Vec::new();
    for source in &set.sources {
        let packages = source.packages.iter().filter(|package| {
            package.name == name && arch.is_none_or(|arch| fits_architecture(set, package, arch))
        });
        found.extend(packages.map(|package| (source.suite.as_str(), &*package.version)));
    }
    let has_match = |is_suite: fn(&str, &str) -> bool| {
        found.iter().any(|(in_suite, has)| {
            version.is_none_or(|version| Wildcards::STAR.matches(version, has))
                && suite.is_none_or(|suite| is_suite(in_suite, suite))
        })
    };
    if has_match(|locked, written| locked == written)
        || set.install.iter().any(|requested| requested == word)
    {
        return PackageAvailability::Carried;
    }
    let others = found.iter().map(|(in_suite, has)| match suite {
        Some(_) => *in_suite,
        None => *has,
    });
    let others = listed(others);
    if has_match(may_be_same_suite) {
        return PackageAvailability::OtherSuiteName(others);
    }
    if !others.is_empty() {
        return PackageAvailability::OtherVersions(others);
    }
    let is_requested = (version, suite) == (None, None)
        && set
            .install
            .iter()
            .any(|requested| split_optional(requested, '=').0 == qualified);
    without_package(set, name, is_requested)
}

/// Whether `package` is one of the architecture `arch` of a word of `apt-get install`.
fn fits_architecture(set: &LockedPackageSet, package: &LockedPackage, arch: &str) -> bool {
    match arch {
        "any" => true,
        "native" | "all" if set.architectures.first() == Some(&package.arch) => true,
        _ => package.arch == "all" || package.arch == arch,
    }
}

/// Suites that are different releases over time, unlike a code name.
const MOVING_SUITES: [&str; 7] = [
    "stable",
    "oldstable",
    "oldoldstable",
    "testing",
    "unstable",
    "experimental",
    "devel",
];

/// Whether the suites `locked` and `written` may be the same one. apt accepts the `Suite`, the
/// `Codename` and the `Version` of a Release file; a lock has only the name in the sources.
fn may_be_same_suite(locked: &str, written: &str) -> bool {
    let is_version = written.starts_with(|c: char| c.is_ascii_digit());
    // the name of a flat repository is a path
    if is_version || locked.ends_with('/') {
        return true;
    }
    // `bookworm-security` can only be `stable-security` or `oldstable-security`
    let (locked, locked_part) = split_optional(locked, '-');
    let (written, part) = split_optional(written, '-');
    locked_part == part && MOVING_SUITES.contains(&locked) != MOVING_SUITES.contains(&written)
}

/// Looks up a package as `dnf install` accepts it.
fn yum_availability(set: &LockedPackageSet, word: &str) -> PackageAvailability {
    let packages: Vec<&LockedPackage> = set
        .sources
        .iter()
        .flat_map(|source| &source.packages)
        .collect();
    let has_match = packages
        .iter()
        .any(|package| yum::is_named(word, &package.name, &package.version, &package.arch));
    if has_match || set.install.iter().any(|requested| requested == word) {
        return PackageAvailability::Carried;
    }
    // a group, or a profile of a module, has no versions
    if word.starts_with('@') {
        return PackageAvailability::NotCarried;
    }
    let pin = RpmPin::parse(word);
    let name = pin.as_ref().map_or(word, |pin| pin.name);
    let others = packages
        .iter()
        .filter(|package| package.name == name)
        .map(|package| package.version.as_str());
    let is_requested = pin.is_none()
        && set.install.iter().any(|requested| {
            RpmPin::parse(requested).map_or(requested.as_str(), |pin| pin.name) == name
        });
    let others = listed(others);
    if !others.is_empty() {
        return PackageAvailability::OtherVersions(others);
    }
    without_package(set, name, is_requested)
}

/// The versions or suites, each once.
fn listed<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let all: BTreeSet<&str> = texts.collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

/// The result for a package that the set does not contain.
fn without_package(set: &LockedPackageSet, name: &str, is_requested: bool) -> PackageAvailability {
    // a requested package that is not in the set is installed already, or another one replaces it
    if is_requested {
        return PackageAvailability::Carried;
    }
    // an expected package is written as a dependency, as in `a (>= 1) | b`
    let is_expected = set
        .expected
        .iter()
        .any(|text| text.split([' ', '|', ',', '(']).any(|word| word == name));
    if is_expected {
        PackageAvailability::Expected
    } else {
        PackageAvailability::NotCarried
    }
}

#[cfg(test)]
mod tests {
    use super::super::locked_tests::set;
    use super::*;

    #[test]
    fn words_of_apt_get_install_are_looked_up() {
        let other = |what: &str| PackageAvailability::OtherVersions(what.into());
        for (word, expected) in [
            ("tool", PackageAvailability::Carried),
            ("tool+", PackageAvailability::Carried),
            ("tool:amd64", PackageAvailability::Carried),
            ("tool:native", PackageAvailability::Carried),
            ("tool:any+", PackageAvailability::Carried),
            ("tool=1:2.0*", PackageAvailability::Carried),
            ("tool/s", PackageAvailability::Carried),
            ("tool=1:2.1", other("1:2.0~rc1-1")),
            ("tool/t", other("s")),
            ("tool:arm64", PackageAvailability::NotCarried),
            ("tool++", PackageAvailability::NotCarried),
            ("tool2", PackageAvailability::NotCarried),
        ] {
            assert_eq!(availability(&set(), "apt", word), Some(expected), "{word}");
        }
        let mut plus = set();
        plus.sources[0].packages[0].name = "tool+".into();
        for word in ["tool+", "tool++"] {
            let found = availability(&plus, "apt", word);
            assert_eq!(found, Some(PackageAvailability::Carried), "{word}");
        }
    }

    #[test]
    fn a_suite_may_have_another_name() {
        for (locked, written, expected) in [
            ("bookworm", "stable", true),
            ("stable", "bookworm", true),
            ("bookworm-security", "oldstable-security", true),
            ("unstable", "sid", true),
            ("bookworm", "12", true),
            ("./", "stable", true),
            ("bookworm", "trixie", false),
            ("stable", "testing", false),
            ("bookworm", "stable-backports", false),
        ] {
            let mut set = set();
            set.sources[0].suite = locked.into();
            let expected = if expected {
                PackageAvailability::OtherSuiteName(locked.into())
            } else {
                PackageAvailability::OtherVersions(locked.into())
            };
            let word = format!("tool/{written}");
            assert_eq!(
                availability(&set, "apt", &word),
                Some(expected),
                "{locked} {word}"
            );
            let other = availability(&set, "apt", &format!("{word}=9"));
            assert!(matches!(other, Some(PackageAvailability::OtherVersions(_))));
        }
    }
}
