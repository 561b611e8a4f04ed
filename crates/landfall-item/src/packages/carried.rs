//! Whether a set has a package that a script installs, by the words that apt and dnf take.

use super::locked::{LockedPackage, PackageSet};
use landfall_packages::apt;
use landfall_packages::yum::{self, Pin};
use std::collections::BTreeSet;

/// What a set of packages says of a package that somebody wants to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// It is carried, or was asked for, and the machines have it.
    Held,
    /// No source has it, so the machines are expected to have it.
    Expected,
    /// It is carried, but not so; its versions, or its suites.
    Otherwise(String),
    /// It is not carried.
    Unknown,
}

/// What `set` says of `word`, as `manager` takes it; `None` where the set is for another one.
pub(super) fn carried(set: &PackageSet, manager: &str, word: &str) -> Option<Carried> {
    match (manager, set.is_yum()) {
        ("apt", false) => Some(of_apt(set, word)),
        ("yum", true) => Some(of_yum(set, word)),
        _ => None,
    }
}

fn of_apt(set: &PackageSet, word: &str) -> Carried {
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
        return Carried::Held;
    }
    let others = found
        .iter()
        .map(|(of, has)| if suite.is_some() { *of } else { *has });
    let is_asked = (version, suite) == (None, None)
        && set.install.iter().any(|asked| split(asked, '=').0 == whole);
    otherwise(others).unwrap_or_else(|| beside(set, name, is_asked))
}

fn of_yum(set: &PackageSet, word: &str) -> Carried {
    let packages = || set.sources.iter().flat_map(|source| &source.packages);
    let is_it = |one: &LockedPackage| yum::is_named(word, &one.name, &one.version, &one.arch);
    if packages().any(is_it) || set.install.iter().any(|asked| asked == word) {
        return Carried::Held;
    }
    let pin = Pin::parse(word);
    let name = pin.as_ref().map_or(word, |pin| pin.name);
    let others = packages()
        .filter(|one| one.name == name)
        .map(|one| one.version.as_str());
    let is_asked =
        |asked: &String| Pin::parse(asked).map_or(asked.as_str(), |pin| pin.name) == name;
    let is_asked = pin.is_none() && set.install.iter().any(is_asked);
    otherwise(others).unwrap_or_else(|| beside(set, name, is_asked))
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at)
        .map_or((text, None), |(first, second)| (first, Some(second)))
}

/// The versions or suites in which a package is there.
fn otherwise<'a>(others: impl Iterator<Item = &'a str>) -> Option<Carried> {
    let all: BTreeSet<&str> = others.collect();
    let listed = all.into_iter().collect::<Vec<_>>().join(", ");
    (!listed.is_empty()).then_some(Carried::Otherwise(listed))
}

/// What is known of a package that is not carried: it was asked for, and the machines have it or
/// another one stands for it; or they must have it.
fn beside(set: &PackageSet, name: &str, is_asked: bool) -> Carried {
    let is_expected = |text: &String| text.split([' ', '|', ',', '(']).any(|word| word == name);
    match is_asked {
        true => Carried::Held,
        false if set.expected.iter().any(is_expected) => Carried::Expected,
        false => Carried::Unknown,
    }
}
