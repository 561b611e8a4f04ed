//! Decides which entries of an item with `keep` stay, get another version, are added or are removed
//! when the versions of the item change.

use crate::EntryPathStep;
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// What happens to an entry, and which new entries are added next to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntrySteps {
    /// The versions of new entries before it.
    pub(super) before: Vec<String>,
    pub(super) own: EntryFate,
    /// The versions of new entries after it.
    pub(super) after: Vec<String>,
}

/// What happens to an entry itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryFate {
    Stays,
    MovesTo(String),
    IsRemoved,
}

/// Returns what happens to each entry when the entries with the versions `old` get the versions
/// `new`.
///
/// If `new` contains the version of an entry, the entry is not touched. The remaining entries move
/// to the new versions that are most similar to their old versions. If there are more new versions,
/// entries are added; if there are fewer, entries are removed.
pub(super) fn entry_steps(old: &[&str], new: &[String]) -> Vec<EntrySteps> {
    let position = |text: &String| old.iter().position(|one| one == text);
    let mut ordered: Vec<&String> = new.iter().collect();
    let staying: Vec<usize> = new.iter().filter_map(position).collect();
    // entries are never reordered: if the versions that stay have another order in `new`, the added
    // versions follow all versions that stay
    if !staying.is_sorted() {
        ordered.sort_by_key(|text| position(text).unwrap_or(old.len()));
    }
    let removed = EntrySteps {
        before: Vec::new(),
        own: EntryFate::IsRemoved,
        after: Vec::new(),
    };
    let mut steps = vec![removed; old.len()];
    let mut free_from = 0;
    let mut added = Vec::new();
    for text in ordered {
        match position(text) {
            Some(at) => {
                steps[at].own = EntryFate::Stays;
                place(&mut steps, &added, old, free_from..at);
                added.clear();
                free_from = at + 1;
            }
            None => added.push(text),
        }
    }
    place(&mut steps, &added, old, free_from..old.len());
    steps
}

/// Moves the entries `free`, which are between two entries that stay, to the versions `added`, and
/// adds entries for the remaining versions.
fn place(steps: &mut [EntrySteps], added: &[&String], old: &[&str], free: Range<usize>) {
    let added_texts: Vec<&str> = added.iter().map(|text| text.as_str()).collect();
    let free_texts = &old[free.clone()];
    let skipped_added = best_offset(free_texts, &added_texts);
    let skipped_free = best_offset(&added_texts, free_texts);
    // a new entry follows the last entry so far that stays or moves; if there is none, it is
    // inserted at the beginning
    let mut last_used = free.start.checked_sub(1);
    for (index, text) in added.iter().enumerate() {
        let reused = index
            .checked_sub(skipped_added)
            .map(|index| free.start + skipped_free + index)
            .filter(|at| free.contains(at));
        if let Some(at) = reused {
            steps[at].own = EntryFate::MovesTo((*text).clone());
            last_used = Some(at);
        } else if let Some(at) = last_used {
            steps[at].after.push((*text).clone());
        } else {
            steps[skipped_free].before.push((*text).clone());
        }
    }
}

/// The number of texts to skip in `longer` so that the texts after them are most similar to the
/// texts of `shorter`. 0 if `longer` does not have more texts than `shorter`.
fn best_offset(shorter: &[&str], longer: &[&str]) -> usize {
    let likeness = |offset: &usize| -> usize {
        let pairs = shorter.iter().zip(&longer[*offset..]);
        pairs.map(|(one, other)| common_prefix(one, other)).sum()
    };
    let offsets = 0..=longer.len().saturating_sub(shorter.len());
    offsets.max_by_key(likeness).unwrap_or_default()
}

fn common_prefix(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(one, other)| one == other).count()
}

/// Applies `steps` to `list`, the entries of a section. `steps` has one element for each of
/// `entries`, whose versions are at `path`. `None` if an entry has no value at `path`.
pub(super) fn list_after(
    list: Vec<Value>,
    entries: &[KeptEntry],
    steps: &[EntrySteps],
    path: &[EntryPathStep],
) -> Option<Vec<Value>> {
    let steps: BTreeMap<usize, (&KeptEntry, &EntrySteps)> = entries
        .iter()
        .zip(steps)
        .map(|(entry, steps)| (entry.index, (entry, steps)))
        .collect();
    let mut result = Vec::new();
    for (index, value) in list.into_iter().enumerate() {
        let Some((entry, steps)) = steps.get(&index) else {
            result.push(value);
            continue;
        };
        let copy = |version: &String| with_version(&value, entry, path, version);
        for version in &steps.before {
            result.push(copy(version)?);
        }
        match &steps.own {
            EntryFate::Stays => result.push(value.clone()),
            EntryFate::MovesTo(version) => result.push(copy(version)?),
            EntryFate::IsRemoved => {}
        }
        for version in &steps.after {
            result.push(copy(version)?);
        }
    }
    Some(result)
}

/// A copy of the entry `value` with another version.
fn with_version(
    value: &Value,
    entry: &KeptEntry,
    path: &[EntryPathStep],
    version: &str,
) -> Option<Value> {
    let mut value = value.clone();
    let text = path.iter().try_fold(&mut value, |value, step| match step {
        EntryPathStep::Key(key) => value.get_mut(*key),
        EntryPathStep::Index(at) => value.get_mut(*at),
    })?;
    let before = &entry.text[..entry.version.start];
    let after = &entry.text[entry.version.end..];
    *text = Value::from([before, version, after].concat());
    Some(value)
}

/// The versions of a variable or item with `keep`.
#[derive(Debug, Clone)]
pub struct KeptVersions {
    /// How many versions an update keeps at most.
    pub count: usize,
    /// The current versions, in the order of the manifest.
    pub values: Vec<String>,
    /// The entries of an item, one for each version; empty for a variable.
    pub(super) entries: Vec<KeptEntry>,
}

/// An entry of an item with `keep`. Each version of the item has an entry of its own.
#[derive(Debug, Clone)]
pub(super) struct KeptEntry {
    /// The position of the entry in its section.
    pub(super) index: usize,
    /// The parsed YAML scalar that contains the version.
    pub(super) text: String,
    /// The bytes of `text` that are the version.
    pub(super) version: Range<usize>,
}

impl KeptVersions {
    /// Whether each version is in an entry of its own.
    pub fn is_of_entries(&self) -> bool {
        !self.entries.is_empty()
    }
}

impl KeptEntry {
    /// The version.
    pub(super) fn current(&self) -> &str {
        &self.text[self.version.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The entries after the steps: `old>new` if the version changed, `+new` if the entry is new.
    fn after(old: &[&str], new: &[&str]) -> String {
        let new: Vec<String> = new.iter().map(|text| (*text).to_owned()).collect();
        let mut entries = Vec::new();
        for (old, steps) in old.iter().zip(entry_steps(old, &new)) {
            entries.extend(steps.before.iter().map(|new| format!("+{new}")));
            match steps.own {
                EntryFate::Stays => entries.push((*old).to_owned()),
                EntryFate::MovesTo(new) => entries.push(format!("{old}>{new}")),
                EntryFate::IsRemoved => {}
            }
            entries.extend(steps.after.iter().map(|new| format!("+{new}")));
        }
        entries.join(" ")
    }

    #[test]
    fn entries_keep_their_order() {
        for (old, new, expected) in [
            (&["1.7", "1.8"][..], &["1.7", "1.8"][..], "1.7 1.8"),
            (
                &["1.7", "1.8", "1.9"],
                &["1.8", "1.9", "1.10"],
                "1.8 1.9 +1.10",
            ),
            (
                &["1.9", "1.8", "1.7"],
                &["1.10", "1.9", "1.8"],
                "+1.10 1.9 1.8",
            ),
            (
                &["1.9.0"],
                &["1.7.5", "1.8.2", "1.9.3"],
                "+1.7.5 +1.8.2 1.9.0>1.9.3",
            ),
            (&["1.9.0"], &["1.9.3", "1.8.2"], "1.9.0>1.9.3 +1.8.2"),
            (&["1.7.1", "1.8.1", "1.9.1"], &["1.9.2"], "1.9.1>1.9.2"),
            (
                &["1.7.1", "1.8.1", "1.9.1"],
                &["1.7.1", "1.8.2", "1.9.1"],
                "1.7.1 1.8.1>1.8.2 1.9.1",
            ),
            (
                &["1.8", "1.7", "1.9"],
                &["1.7", "1.8", "1.9", "1.10"],
                "1.8 1.7 1.9 +1.10",
            ),
        ] {
            assert_eq!(after(old, new), expected);
        }
    }

    proptest! {
        #[test]
        fn entries_get_exactly_the_new_versions(
            old in proptest::sample::subsequence(vec!["1.1", "1.2", "1.3", "1.4", "2.1"], 1..5).prop_shuffle(),
            new in proptest::sample::subsequence(vec!["1.1", "1.3", "1.4", "2.0", "2.1"], 1..5),
        ) {
            let text = after(&old, &new);
            let mut found: Vec<&str> = text
                .split(' ')
                .filter_map(|one| one.rsplit(['>', '+']).next())
                .collect();
            found.sort_unstable();
            prop_assert_eq!(found, new);
        }
    }
}
