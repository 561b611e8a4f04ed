//! Requests for packages: matches the forms of names that `dnf install` accepts.

use super::obsoletes;
use super::reasons::offers;
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::{RpmRelation, VersionSense};
use crate::yum::requests::{PackageRequest, WantedPackages};
use crate::yum::version::{Architectures, Evr, is_architecture};
use landfall_model::Wildcards;
use std::collections::HashMap;
use std::ops::Range;

/// Returns the texts by which a package can be requested in one form, from its name, version and
/// architecture.
type NameForm = fn(&str, &str, &str) -> Vec<String>;

/// The index in `FORMS` of the form that is only the name.
const NAME_ALONE: usize = 2;

/// The forms that dnf tries, in its order: `name-evr.arch`, `name.arch`, `name`, `name-evr`,
/// `name-version`.
const FORMS: [NameForm; 5] = [
    |name, evr, arch| {
        with_epoch(evr)
            .into_iter()
            .map(|evr| format!("{name}-{evr}.{arch}"))
            .collect()
    },
    |name, _, arch| vec![format!("{name}.{arch}")],
    |name, _, _| vec![name.to_owned()],
    |name, evr, _| {
        with_epoch(evr)
            .into_iter()
            .map(|evr| format!("{name}-{evr}"))
            .collect()
    },
    |name, evr, _| {
        let versions = with_epoch(evr).into_iter();
        versions
            .filter_map(|evr| Some(format!("{name}-{}", evr.rsplit_once('-')?.0)))
            .collect()
    },
];

/// Whether the request `word`, which may contain wildcards, names the package in one of the forms
/// of `dnf install`.
pub fn is_named(word: &str, name: &str, evr: &str, arch: &str) -> bool {
    FORMS.iter().any(|form| {
        form(name, evr, arch)
            .iter()
            .any(|text| Wildcards::SHELL.matches(word, text))
    })
}

/// Returns the candidates of `request` in groups: one package of each group must be installed.
pub(super) fn candidates(
    pool: &Pool,
    architectures: &Architectures,
    request: &PackageRequest,
) -> Vec<Vec<PackageId>> {
    let named = |name: &str| {
        let mut found = pool.named(name);
        found.retain(|id| pool.name(*id) == name);
        found
    };
    match &request.wanted {
        WantedPackages::Word(word) => candidate_groups(pool, word),
        WantedPackages::OfGroup(package) => {
            let mut found = named(&package.name);
            if package.is_native {
                found.retain(|id| pool.arch(*id) == architectures.native());
            }
            one_group(with_replacements(pool, found))
        }
        WantedPackages::OfModule(name, artifacts) => {
            let all = named(name);
            let mut own = all.clone();
            own.retain(|id| artifacts.contains(&pool.full_name(*id)));
            // as in dnf: a profile may list packages outside of the module
            one_group(if own.is_empty() { all } else { own })
        }
    }
}

/// Returns the candidates of a word in groups: one package of each group must be installed. A word
/// with wildcards gives one group for each name.
fn candidate_groups(pool: &Pool, word: &str) -> Vec<Vec<PackageId>> {
    if let Some(relation) =
        RpmRelation::parse(word).filter(|relation| relation.sense != VersionSense::ANY)
    {
        return one_group(pool.providers(relation));
    }
    if word.starts_with('/') {
        return one_group(pool.named(word));
    }
    let is_glob = word.contains(['*', '?']);
    // every form begins with the name, so this excludes most packages before any form is built
    let start = word.split(['*', '?']).next().unwrap_or(word);
    let similar: Vec<PackageId> = pool
        .ids()
        .filter(|id| {
            let name = pool.name(*id);
            name.starts_with(start) || start.starts_with(name)
        })
        .collect();
    for (number, form) in FORMS.iter().enumerate() {
        let mut found: Vec<PackageId> = similar
            .iter()
            .filter(|id| {
                form(pool.name(**id), pool.evr(**id), pool.arch(**id))
                    .iter()
                    .any(|text| Wildcards::SHELL.matches(word, text))
            })
            .copied()
            .collect();
        // as in dnf, the first form that matches anything decides
        if found.is_empty() {
            continue;
        }
        if number == NAME_ALONE {
            found = with_replacements(pool, found);
        }
        return if is_glob {
            by_name(pool, found)
        } else {
            vec![found]
        };
    }
    one_group(pool.named(word))
}

fn one_group(found: Vec<PackageId>) -> Vec<Vec<PackageId>> {
    if found.is_empty() {
        Vec::new()
    } else {
        vec![found]
    }
}

/// Returns a version with and without its epoch. An omitted epoch is 0.
fn with_epoch(evr: &str) -> Vec<String> {
    match evr.split_once(':') {
        Some((_, rest)) => vec![evr.to_owned(), rest.to_owned()],
        None => vec![evr.to_owned(), format!("0:{evr}")],
    }
}

/// Returns `found` and the packages that obsolete one of them.
fn with_replacements(pool: &Pool, mut found: Vec<PackageId>) -> Vec<PackageId> {
    let mut found_names: HashMap<&str, Vec<PackageId>> = HashMap::new();
    for id in &found {
        found_names.entry(pool.name(*id)).or_default().push(*id);
    }
    let replaces_one = |id: &PackageId| {
        pool.relations(*id, RpmRelationKind::Obsoletes)
            .filter_map(|relation| found_names.get(relation.name))
            .flatten()
            .any(|other| obsoletes(pool, *id, *other))
    };
    let replacements: Vec<PackageId> = pool.ids().filter(replaces_one).collect();
    // as in dnf, a request for a name also allows the package that obsoletes it
    found.extend(replacements);
    found.sort_unstable();
    found.dedup();
    found
}

fn by_name(pool: &Pool, found: Vec<PackageId>) -> Vec<Vec<PackageId>> {
    let mut names = std::collections::BTreeMap::<&str, Vec<PackageId>>::new();
    found
        .into_iter()
        .for_each(|id| names.entry(pool.name(id)).or_default().push(id));
    names.into_values().collect()
}

/// Explains why the request `word` matches nothing: by the existing versions if it contains the
/// name of a package or capability, otherwise by a similar name.
pub(super) fn explain_no_match(pool: &Pool, word: &str) -> String {
    let name = match RpmRelation::parse(word).filter(|relation| relation.sense != VersionSense::ANY)
    {
        Some(relation) => Some(relation.name.to_owned()),
        None => name_before_version(pool, word),
    };
    let offers = name.map_or_else(Vec::new, |name| offers(pool, &name));
    if !offers.is_empty() {
        return format!(
            "no source offers '{word}'; the sources have only {}",
            offers.join(", ")
        );
    }
    match nearest(pool, word) {
        Some(name) => format!("no source offers '{word}'; a similar name is '{name}'"),
        None => format!("no source offers '{word}'"),
    }
}

/// Returns the longest package name at the beginning of `word` that is followed by a version or an
/// architecture.
fn name_before_version(pool: &Pool, word: &str) -> Option<String> {
    pool.ids()
        .map(|id| pool.name(id))
        .filter(|name| {
            word.strip_prefix(*name)
                .is_some_and(|rest| match rest.strip_prefix('-') {
                    Some(version) => {
                        version.starts_with(|first: char| first.is_ascii_digit() || first == '*')
                    }
                    None => rest.len() > 1 && rest.starts_with('.'),
                })
        })
        .max_by_key(|name| name.len())
        .map(str::to_owned)
}

/// Returns the package name that differs from `word` by the fewest edits, at most two.
fn nearest(pool: &Pool, word: &str) -> Option<String> {
    pool.ids()
        .map(|id| pool.name(id))
        // a quick check: each edit changes the length by at most 1
        .filter(|name| name.len().abs_diff(word.len()) < 3)
        .map(|name| (strsim::damerau_levenshtein(name, word), name))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, name)| name.to_owned())
}

// Requests for a package in one version, in the syntax of `dnf install`: `name-version` or
// `name-version-release`. An epoch may precede the version, and `.arch` may follow it.

/// A parsed request for a package in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpmPin<'t> {
    /// The name of the package, without its version.
    pub name: &'t str,
    /// The architecture, if the request has one.
    pub arch: Option<&'t str>,
    /// The byte range of the version in the text of the request.
    pub version: Range<usize>,
}

impl<'t> RpmPin<'t> {
    /// Parses a request. Returns `None` if it has no version, or is a pattern, a capability with a
    /// version, a file, a rich dependency, or a text with variables.
    ///
    /// Names may contain dashes; versions and releases may not (`rpm-version(7)`). So the version
    /// is the last part of the text, or its last two parts. A version begins with a digit. A
    /// release may begin with a letter, as in `lp155.2.1` and `alt1`, but so does the last part of
    /// names such as `java-17-openjdk` and `dbus-1-x11`. A last part that begins with a letter
    /// counts as a release if it contains a digit and the part before it is clearly a version: that
    /// part begins with a digit and contains a dot or an epoch.
    pub fn parse(text: &'t str) -> Option<RpmPin<'t>> {
        if text.contains(['*', '?', ' ', '/', '(', '$']) {
            return None;
        }
        // only known architectures: releases contain dots too, such as `2.el9`
        let arch = text
            .rsplit_once('.')
            .map(|(_, arch)| arch)
            .filter(|arch| is_architecture(arch));
        let body = arch.map_or(text, |arch| &text[..text.len() - arch.len() - 1]);
        let last = body.rfind('-')?;
        let release = &body[last + 1..];
        let before = body[..last]
            .rfind('-')
            .filter(|dash| begins_with_digit(&body[dash + 1..]));
        let dash = if begins_with_digit(release) {
            before.unwrap_or(last)
        } else {
            let is_version = |dash: &usize| body[dash + 1..last].contains(['.', ':']);
            before.filter(|dash| is_version(dash) && is_release(release))?
        };
        if dash == 0 {
            return None;
        }
        Some(RpmPin {
            name: &body[..dash],
            arch,
            version: dash + 1..body.len(),
        })
    }

    /// Returns `evr` with an epoch if `current` has one, and with a release if `current` has one.
    pub fn written_like(current: &str, evr: &str) -> String {
        let (new, has) = (Evr::parse(evr), Evr::parse(current));
        let mut written = new.version.to_owned();
        if current.contains(':') {
            written.insert_str(0, &format!("{}:", new.epoch));
        }
        if let Some(release) = new.release.filter(|_| has.release.is_some()) {
            written += &format!("-{release}");
        }
        written
    }

    /// Returns the upstream version in `evr`: without epoch and release.
    pub fn upstream(evr: &str) -> &str {
        Evr::parse(evr).version
    }
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether `text` is a release rather than a word: it contains a digit, and only characters that
/// rpm allows.
fn is_release(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._+~^".contains(c);
    text.chars().all(is_allowed) && text.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_version_are_separated() {
        for (text, name, version) in [
            ("containerd.io-1.7.24", "containerd.io", "1.7.24"),
            ("kubelet-1.33.4-150500.1.1", "kubelet", "1.33.4-150500.1.1"),
            (
                "java-17-openjdk-17.0.9.0.9-2.el9",
                "java-17-openjdk",
                "17.0.9.0.9-2.el9",
            ),
            (
                "nfs-utils-1:2.5.4-20.el9.x86_64",
                "nfs-utils",
                "1:2.5.4-20.el9",
            ),
            (
                "docker-24.0.5_ce-lp155.1.2",
                "docker",
                "24.0.5_ce-lp155.1.2",
            ),
            (
                "containerd-1.7.27-bp156.1.1.i586",
                "containerd",
                "1.7.27-bp156.1.1",
            ),
            ("libssl-0:3-alt1", "libssl", "0:3-alt1"),
        ] {
            let pin = RpmPin::parse(text).unwrap();
            assert_eq!((pin.name, &text[pin.version]), (name, version), "{text}");
        }
        for none in [
            "containerd.io",
            "nfs-utils",
            "java-17-openjdk",
            "java-17-openjdk.x86_64",
            "java-1.8.0-openjdk",
            "dbus-1-x11",
            "gcc-c++-x1",
            "kubelet-1.33.*",
            "a >= 1",
            "/usr/bin/env-1",
            "-1",
        ] {
            assert_eq!(RpmPin::parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_new_version_is_written_like_the_old_one() {
        for (current, evr, written) in [
            ("1.0", "1:2.0-3", "2.0"),
            ("1.0-1", "1:2.0-3", "2.0-3"),
            ("0:1.0-1", "2.0-3", "0:2.0-3"),
            ("1:1.0", "1:2.0-3", "1:2.0"),
        ] {
            assert_eq!(RpmPin::written_like(current, evr), written);
        }
    }
}
