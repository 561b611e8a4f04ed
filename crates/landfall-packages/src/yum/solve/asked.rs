//! What people ask for, as packages: the forms of names that `dnf install` takes.

use super::reasons::offers;
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::{RpmRelation, VersionSense};

/// A way to write a package: of its name, version and architecture.
type NameForm = fn(&str, &str, &str) -> Vec<String>;

/// The forms that dnf tries, in its order.
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

/// Whether `word` names the package in one of these forms.
pub fn is_named(word: &str, name: &str, evr: &str, arch: &str) -> bool {
    FORMS
        .iter()
        .any(|form| form(name, evr, arch).iter().any(|text| matches(word, text)))
}

/// Packages of which one is to be installed, for each word that was asked for; a word with `*`
/// gives one for each name.
pub(super) fn asked(pool: &Pool, word: &str) -> Vec<Vec<PackageId>> {
    let all: Vec<PackageId> = pool.ids().collect();
    if let Some(relation) =
        RpmRelation::parse(word).filter(|relation| relation.sense != VersionSense::ANY)
    {
        return some(pool.providers(relation));
    }
    if word.starts_with('/') {
        return some(pool.named(word));
    }
    let is_glob = word.contains(['*', '?']);
    for (number, form) in FORMS.iter().enumerate() {
        // the name is what every form begins with, up to its first wildcard
        let start = word.split(['*', '?']).next().unwrap_or(word);
        let may_be = |id: &&PackageId| {
            let name = pool.name(**id);
            name.starts_with(start) || start.starts_with(name)
        };
        let fits = |id: &&PackageId| {
            form(pool.name(**id), pool.evr(**id), pool.arch(**id))
                .iter()
                .any(|text| matches(word, text))
        };
        let mut found: Vec<PackageId> = all.iter().filter(may_be).filter(fits).copied().collect();
        if found.is_empty() {
            continue;
        }
        let is_name_alone = number == 2;
        if is_name_alone {
            found = with_replacements(pool, found);
        }
        return if is_glob {
            by_name(pool, found)
        } else {
            vec![found]
        };
    }
    some(pool.named(word))
}

fn some(found: Vec<PackageId>) -> Vec<Vec<PackageId>> {
    if found.is_empty() {
        Vec::new()
    } else {
        vec![found]
    }
}

/// The version of a package as people write it: with its epoch, and without.
fn with_epoch(evr: &str) -> Vec<String> {
    match evr.split_once(':') {
        Some((_, rest)) => vec![evr.to_owned(), rest.to_owned()],
        None => vec![evr.to_owned(), format!("0:{evr}")],
    }
}

/// `found`, and the packages that replace them.
fn with_replacements(pool: &Pool, mut found: Vec<PackageId>) -> Vec<PackageId> {
    let replaces = |id: &PackageId| {
        pool.relations(*id, RpmRelationKind::Obsoletes)
            .any(|relation| {
                found.iter().any(|other| {
                    pool.name(*other) == relation.name
                        && VersionSense::SAME.meets(pool.evr(*other), relation.sense, relation.evr)
                })
            })
    };
    let more: Vec<PackageId> = pool.ids().filter(replaces).collect();
    found.extend(more);
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

/// Whether `text` is what `pattern` means: `*` for anything, `?` for one character.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t, mut back) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => match back {
                Some((star, from)) => {
                    back = Some((star, from + 1));
                    (p, t) = (star + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Why nothing is meant by `word`: the versions that there are, if a name in it is one of a package
/// or of something provided; otherwise the name that people may have meant.
pub(super) fn not_offered(pool: &Pool, word: &str) -> String {
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
        Some(name) => format!("no source offers '{word}'; there is '{name}'"),
        None => format!("no source offers '{word}'"),
    }
}

/// The longest name of a package with which `word` begins, with a version or an architecture behind
/// it.
fn name_before_version(pool: &Pool, word: &str) -> Option<String> {
    let is_before = |name: &&str| {
        let rest = word
            .strip_prefix(*name)
            .and_then(|rest| rest.strip_prefix(['-', '.']));
        rest.is_some_and(|rest| !rest.is_empty())
    };
    let names = pool.ids().map(|id| pool.name(id)).filter(is_before);
    let is_version = |name: &&str| {
        let rest = &word[name.len()..];
        rest.starts_with('.')
            || rest[1..].starts_with(|first: char| first.is_ascii_digit() || first == '*')
    };
    names
        .filter(is_version)
        .max_by_key(|name| name.len())
        .map(str::to_owned)
}

/// The name of a package that people may have meant by `word`.
fn nearest(pool: &Pool, word: &str) -> Option<String> {
    let names = pool
        .ids()
        .map(|id| pool.name(id))
        .filter(|name| name.len().abs_diff(word.len()) < 3);
    let scored = names.map(|name| (strsim::damerau_levenshtein(name, word), name));
    scored
        .filter(|(score, _)| *score <= 2)
        .min()
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_those_of_dnf() {
        for (pattern, text, expected) in [
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("containerd.io-2.2*", "containerd.io-2.2.1-1.el9", true),
            ("containerd.io-2.2*", "containerd.io-2.1.1-1.el9", false),
            ("*", "", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
