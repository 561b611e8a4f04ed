//! Whether a set contains a package that a script installs with apt or dnf.

use super::locked::{LockedPackage, LockedPackageSet};
use landfall_packages::apt;
use landfall_packages::yum::{self, RpmPin};
use std::collections::BTreeSet;

/// Whether a machine can install a package from a set of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageAvailability {
    /// The set contains the package, or the machines already have what was requested.
    Carried,
    /// No source has the package, so the machines are expected to have it installed.
    Expected,
    /// The set contains the package, but only in these versions or suites.
    OtherVersions(String),
    /// The set does not contain the package.
    NotCarried,
}

/// Looks up `word`, written as for the package manager `manager`, in `set`. `None` if the set is
/// for another package manager.
pub(super) fn availability(
    set: &LockedPackageSet,
    manager: &str,
    word: &str,
) -> Option<PackageAvailability> {
    match (manager, set.is_yum()) {
        ("apt", false) => Some(of_apt(set, word)),
        ("yum", true) => Some(of_yum(set, word)),
        _ => None,
    }
}

fn of_apt(set: &LockedPackageSet, word: &str) -> PackageAvailability {
    let (rest, version) = split(word, '=');
    let (whole, suite) = split(rest, '/');
    let (name, arch) = split(whole, ':');
    let is_meant = |package: &&LockedPackage| {
        package.name == name
            && arch.is_none_or(|arch| arch == package.arch || package.arch == "all")
    };
    let found = set.sources.iter().flat_map(|source| {
        source
            .packages
            .iter()
            .filter(is_meant)
            .map(move |package| (source.suite.as_str(), &*package.version))
    });
    let found: Vec<(&str, &str)> = found.collect();
    let fits = |(of, has): &(&str, &str)| {
        version.is_none_or(|wanted| apt::version_fits(has, wanted))
            && suite.is_none_or(|suite| *of == suite)
    };
    if found.iter().any(fits) || set.install.iter().any(|asked| asked == word) {
        return PackageAvailability::Carried;
    }
    let others = found
        .iter()
        .map(|(of, has)| if suite.is_some() { *of } else { *has });
    let is_asked = (version, suite) == (None, None)
        && set.install.iter().any(|asked| split(asked, '=').0 == whole);
    otherwise(others).unwrap_or_else(|| beside(set, name, is_asked))
}

fn of_yum(set: &LockedPackageSet, word: &str) -> PackageAvailability {
    let packages = || set.sources.iter().flat_map(|source| &source.packages);
    let is_it = |one: &LockedPackage| yum::is_named(word, &one.name, &one.version, &one.arch);
    if packages().any(is_it) || set.install.iter().any(|asked| asked == word) {
        return PackageAvailability::Carried;
    }
    let pin = RpmPin::parse(word);
    let name = pin.as_ref().map_or(word, |pin| pin.name);
    let others = packages()
        .filter(|one| one.name == name)
        .map(|one| one.version.as_str());
    let is_asked =
        |asked: &String| RpmPin::parse(asked).map_or(asked.as_str(), |pin| pin.name) == name;
    let is_asked = pin.is_none() && set.install.iter().any(is_asked);
    otherwise(others).unwrap_or_else(|| beside(set, name, is_asked))
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at)
        .map_or((text, None), |(first, second)| (first, Some(second)))
}

/// The other versions or suites in which the package is available, if there are any.
fn otherwise<'a>(others: impl Iterator<Item = &'a str>) -> Option<PackageAvailability> {
    let all: BTreeSet<&str> = others.collect();
    let listed = all.into_iter().collect::<Vec<_>>().join(", ");
    (!listed.is_empty()).then_some(PackageAvailability::OtherVersions(listed))
}

/// The answer for a package that the set does not contain: it was requested and is already
/// installed or replaced by another package; or it is expected on the machines; or it is unknown.
fn beside(set: &LockedPackageSet, name: &str, is_asked: bool) -> PackageAvailability {
    let is_expected = |text: &String| text.split([' ', '|', ',', '(']).any(|word| word == name);
    if is_asked {
        PackageAvailability::Carried
    } else if set.expected.iter().any(is_expected) {
        PackageAvailability::Expected
    } else {
        PackageAvailability::NotCarried
    }
}
