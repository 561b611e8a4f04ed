//! The NO_PROXY lists of one document. A document may spell one list several times, as keys,
//! variables, drop-ins and commands; after a merge, all of them are equal.

use serde_yaml::{Mapping, Value};

/// The keys of mappings whose values configure networks of their own, each with its own NO_PROXY:
/// the datacenters of a Seed.
const SEPARATE: [&str; 1] = ["datacenters"];

/// The NO_PROXY lists that were merged in a document.
#[derive(Debug, Default)]
pub(super) struct NoProxyLists {
    /// Pairs of a new list, and the list that results from it.
    merged: Vec<(String, String)>,
    /// The list that replaces every list of the document, once it is known.
    common: Option<String>,
}

impl NoProxyLists {
    /// Merges the list `new` into the existing list `old`.
    pub(super) fn merge(&mut self, old: &str, new: &str) -> String {
        let list = match &self.common {
            Some(common) => common.clone(),
            None => with_entries(old, new),
        };
        self.merged.push((new.to_owned(), list.clone()));
        list
    }

    /// Returns the lists of a second merge, in which all lists become equal, and its values: the
    /// mapping `values` with the common list instead of the new ones. `None` if the first merge
    /// kept no entry of the file, so that all lists are equal already.
    pub(super) fn common(&self, values: &Mapping) -> Option<(NoProxyLists, Mapping)> {
        let mut results = self.merged.iter().map(|(_, result)| result);
        let common = results
            .next()
            .map(|first| results.fold(first.clone(), |all, list| with_entries(&all, list)))?;
        // the list is also written to commands and drop-ins, so it must not need quotes there
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_*:/[], ".contains(c);
        let is_kept = self.merged.iter().any(|(new, result)| new != result);
        if !is_kept || !common.chars().all(is_plain) {
            return None;
        }
        let mut new: Vec<&str> = self.merged.iter().map(|(new, _)| new.as_str()).collect();
        // a longer list may contain a shorter one
        new.sort_by_key(|list| std::cmp::Reverse(list.len()));
        new.dedup();
        let values = with_list(&Value::Mapping(values.clone()), "", &new, &common);
        let Value::Mapping(values) = values else {
            return None;
        };
        let lists = NoProxyLists {
            merged: Vec::new(),
            common: Some(common),
        };
        Some((lists, values))
    }
}

/// Whether the value at the path `keys` is a NO_PROXY list of the document. In an item of `env`,
/// the key is `value`, below the name of the variable.
pub(super) fn is_no_proxy_path(keys: &[String]) -> bool {
    keys.iter().rev().take(2).any(|key| is_no_proxy(key))
}

/// Whether the path `keys` leads to a network with a NO_PROXY of its own.
pub(super) fn is_separate(keys: &[String]) -> bool {
    keys.iter().any(|key| SEPARATE.contains(&key.as_str()))
}

/// Whether the variable or key `name` is a list of hosts that bypass the proxy.
pub(super) fn is_no_proxy(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.to_ascii_lowercase().ends_with("noproxy")
}

/// The comma-separated list `old` followed by the entries of `new` that it lacks.
pub(super) fn with_entries(old: &str, new: &str) -> String {
    if old.trim().is_empty() {
        return new.to_owned();
    }
    let existing: Vec<&str> = list_entries(old).collect();
    let missing: Vec<&str> = list_entries(new)
        .filter(|entry| !existing.contains(entry))
        .collect();
    if missing.is_empty() {
        return old.to_owned();
    }
    format!("{},{}", old.trim().trim_end_matches(','), missing.join(","))
}

fn list_entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

/// Returns `value`, the value of `key`, with `common` instead of each of `lists`.
fn with_list(value: &Value, key: &str, lists: &[&str], common: &str) -> Value {
    match value {
        Value::Mapping(mapping) => mapping
            .iter()
            .map(|(key, value)| {
                let name = key.as_str().unwrap_or_default();
                let new = if SEPARATE.contains(&name) {
                    value.clone()
                } else {
                    with_list(value, name, lists, common)
                };
                (key.clone(), new)
            })
            .collect::<Mapping>()
            .into(),
        Value::Sequence(items) => items
            .iter()
            .map(|item| with_list(item, key, lists, common))
            .collect::<Vec<_>>()
            .into(),
        Value::String(text) if is_no_proxy(key) && lists.contains(&text.as_str()) => common.into(),
        Value::String(text) => replaced(text, lists, common).into(),
        other => other.clone(),
    }
}

/// Replaces in `text` the lists of several entries. A single entry may also be the host of a URL.
fn replaced(text: &str, lists: &[&str], common: &str) -> String {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_.,/:".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let before = text[..text.len() - rest.len()].chars().next_back();
        // the colon of `NO_PROXY:` is a separator, too
        let starts = !before.is_some_and(|c| c != ':' && is_inside(c));
        let list = lists.iter().find(|list| {
            starts
                && list.contains(',')
                && rest
                    .strip_prefix(**list)
                    .is_some_and(|after| !after.starts_with(is_inside))
        });
        let length = list.map_or(first.len_utf8(), |list| list.len());
        out += if list.is_some() {
            common
        } else {
            &rest[..length]
        };
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_list_are_added_once() {
        assert_eq!(with_entries("a, b", "b,c"), "a, b,c");
        assert_eq!(with_entries("a,b", "b"), "a,b");
        assert_eq!(with_entries("", "b"), "b");
        assert!(is_no_proxy("TKG_NO_PROXY") && is_no_proxy("noProxy") && !is_no_proxy("proxy"));
    }

    #[test]
    fn a_list_is_replaced_in_commands_and_drop_ins_only_as_a_whole() {
        for (text, expected) in [
            ("export NO_PROXY='a,b'", "export NO_PROXY='x,a,b'"),
            (
                "Environment=\"NO_PROXY=a,b\"\nA=a,b,c\n",
                "Environment=\"NO_PROXY=x,a,b\"\nA=a,b,c\n",
            ),
            ("no_proxy: a,b\n", "no_proxy: x,a,b\n"),
            ("ä http://b/ a", "ä http://b/ a"),
        ] {
            assert_eq!(replaced(text, &["a,b", "b"], "x,a,b"), expected);
        }
    }
}
