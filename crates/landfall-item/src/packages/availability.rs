//! Whether a set contains a package that a script installs with apt or dnf.

use super::locked::{LockedPackage, LockedPackageSet};
use landfall_packages::apt;
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

/// Looks up a package by `name[:arch][/suite][=version]`.
fn apt_availability(set: &LockedPackageSet, word: &str) -> PackageAvailability {
    let (rest, version) = split_at(word, '=');
    let (qualified, suite) = split_at(rest, '/');
    let (name, arch) = split_at(qualified, ':');
    let mut found: Vec<(&str, &str)> = Vec::new();
    for source in &set.sources {
        let packages = source.packages.iter().filter(|package| {
            package.name == name
                && arch.is_none_or(|arch| arch == package.arch || package.arch == "all")
        });
        found.extend(packages.map(|package| (source.suite.as_str(), &*package.version)));
    }
    let has_match = found.iter().any(|(in_suite, has)| {
        version.is_none_or(|version| apt::version_fits(has, version))
            && suite.is_none_or(|suite| *in_suite == suite)
    });
    if has_match || set.install.iter().any(|requested| requested == word) {
        return PackageAvailability::Carried;
    }
    let others = found.iter().map(|(in_suite, has)| match suite {
        Some(_) => *in_suite,
        None => *has,
    });
    let is_requested = (version, suite) == (None, None)
        && set
            .install
            .iter()
            .any(|requested| split_at(requested, '=').0 == qualified);
    other_versions(others).unwrap_or_else(|| without_package(set, name, is_requested))
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
    other_versions(others).unwrap_or_else(|| without_package(set, name, is_requested))
}

fn split_at(text: &str, separator: char) -> (&str, Option<&str>) {
    text.split_once(separator)
        .map_or((text, None), |(first, second)| (first, Some(second)))
}

/// The other versions or suites in which the package is available, if there are any.
fn other_versions<'a>(others: impl Iterator<Item = &'a str>) -> Option<PackageAvailability> {
    let all: BTreeSet<&str> = others.collect();
    let listed = all.into_iter().collect::<Vec<_>>().join(", ");
    (!listed.is_empty()).then_some(PackageAvailability::OtherVersions(listed))
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
