//! Requests for packages: matches the forms of names that `dnf install` accepts.

use super::base_rules::obsoletes;
use super::reasons::offers;
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::{RpmRelation, VersionSense};
use std::collections::HashMap;

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
    FORMS
        .iter()
        .any(|form| form(name, evr, arch).iter().any(|text| matches(word, text)))
}

/// Returns the candidates of a request in groups: one package of each group must be installed. A
/// request with wildcards gives one group for each name.
pub(super) fn candidate_groups(pool: &Pool, word: &str) -> Vec<Vec<PackageId>> {
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
                    .any(|text| matches(word, text))
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

/// Whether `text` matches `pattern`: `*` matches any text, `?` one byte.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern = pattern.as_bytes();
    let text = text.as_bytes();
    // only the last `*` is ever extended, so the time is at most the product of the lengths
    let mut p = 0;
    let mut t = 0;
    let mut back = None;
    while t < text.len() {
        match pattern.get(p) {
            // `*` matches nothing at first, and one more byte after each mismatch
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_any_text_or_one_byte() {
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
