//! Paths into JSON documents that list versions: `[].tag_name`, `items[0].latest`, `versions{}`.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The maximum number of elements of a list, or members of an object, on a path. Each takes more
/// memory than its text may have.
const MOST_VALUES: usize = 200_000;

/// Why a path leads to no texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum JsonPathError {
    /// The text is not a path.
    #[error(
        "`{0}` is not a path: write keys with dots between them, `[]` for every element of a list, \
         `[0]` for one, `{{}}` for the keys of an object"
    )]
    Invalid(String),
    /// A list or an object on the path is too long.
    #[error("a list or an object at `{0}` has more than {MOST_VALUES} members")]
    TooLong(String),
}

enum JsonPathStep<'a> {
    /// The value of a key.
    Key(&'a str),
    /// All elements of a list.
    Each,
    /// One element of a list, by its index from 0.
    At(usize),
    /// The keys of an object.
    Keys,
}

/// A value that a path has led to so far.
enum JsonNode<'a> {
    Value(&'a RawValue),
    /// The key of an object.
    Name(String),
}

/// The members of an object or the elements of a list, in the order of the document. Elements have
/// an empty name. `None` if there are too many.
struct JsonMembers<'a>(Option<Vec<(String, &'a RawValue)>>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonMembers<'a>, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = JsonMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while members.len() < MOST_VALUES {
                    match map.next_entry()? {
                        Some(member) => members.push(member),
                        None => return Ok(JsonMembers(Some(members))),
                    }
                }
                let is_cut = map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some();
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(JsonMembers((!is_cut).then_some(members)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while elements.len() < MOST_VALUES {
                    match list.next_element()? {
                        Some(element) => elements.push((String::new(), element)),
                        None => return Ok(JsonMembers(Some(elements))),
                    }
                }
                let is_cut = list.next_element::<IgnoredAny>()?.is_some();
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(JsonMembers((!is_cut).then_some(elements)))
            }
        }
        deserializer.deserialize_any(MembersVisitor)
    }
}

/// The strings, numbers and keys at `path` in `document`, in the order of the document. Numbers are
/// as they are written: `1.10` is not the same version as `1.1`.
pub(super) fn texts_at(document: &RawValue, path: &str) -> Result<Vec<String>, JsonPathError> {
    let mut found = vec![JsonNode::Value(document)];
    for step in steps(path).ok_or_else(|| JsonPathError::Invalid(path.to_owned()))? {
        let mut next = Vec::new();
        for node in found {
            if let JsonNode::Value(value) = node {
                let led = follow(value.get(), &step);
                next.extend(
                    led.filter(|led| next.len() + led.len() <= MOST_VALUES)
                        .ok_or_else(|| JsonPathError::TooLong(path.to_owned()))?,
                );
            }
        }
        found = next;
    }
    let texts = found.into_iter().filter_map(|node| match node {
        JsonNode::Name(name) => Some(name),
        JsonNode::Value(value) => match value.get().as_bytes().first()? {
            b'"' => serde_json::from_str(value.get()).ok(),
            // some documents write a version such as 1.5 as a number
            b'-' | b'0'..=b'9' => Some(value.get().to_owned()),
            _ => None,
        },
    });
    Ok(texts.collect())
}

/// The values to which `step` leads from `value`; `None` if there are too many. A step that does not
/// fit leads to none: elements of a list may have different keys.
fn follow<'a>(value: &'a str, step: &JsonPathStep<'_>) -> Option<Vec<JsonNode<'a>>> {
    let is_list = value.starts_with('[');
    let is_for_lists = matches!(step, JsonPathStep::Each | JsonPathStep::At(_));
    if is_list != is_for_lists {
        return Some(Vec::new());
    }
    let JsonMembers(members) =
        serde_json::from_str(value).unwrap_or_else(|_| JsonMembers(Some(Vec::new())));
    let mut members = members?.into_iter();
    let value = |(_, value)| JsonNode::Value(value);
    Some(match step {
        // if a document has a key twice, the last one counts
        JsonPathStep::Key(key) => {
            let found = members.rfind(|(name, _)| name == key);
            found.map(value).into_iter().collect()
        }
        JsonPathStep::Each => members.map(value).collect(),
        JsonPathStep::At(at) => members.nth(*at).map(value).into_iter().collect(),
        // the keys of an object are versions in some documents: `{"versions": {"1.0": {}}}`
        JsonPathStep::Keys => members.map(|(name, _)| JsonNode::Name(name)).collect(),
    })
}

fn steps(path: &str) -> Option<Vec<JsonPathStep<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(remaining) = rest.strip_prefix("[]") {
            steps.push(JsonPathStep::Each);
            rest = remaining;
        } else if let Some(remaining) = rest.strip_prefix("{}") {
            steps.push(JsonPathStep::Keys);
            rest = remaining;
        } else if let Some(remaining) = rest.strip_prefix('[') {
            let (number, remaining) = remaining.split_once(']')?;
            steps.push(JsonPathStep::At(number.parse().ok()?));
            rest = remaining;
        } else {
            let key = match (rest.strip_prefix('.'), steps.is_empty()) {
                // a leading dot is optional: `.a.b` and `a.b` are the same path
                (Some(key), _) => key,
                (None, true) => rest,
                (None, false) => return None,
            };
            let end = key.find(['.', '[', '{']).unwrap_or(key.len());
            if end == 0 {
                return None;
            }
            steps.push(JsonPathStep::Key(&key[..end]));
            rest = &key[end..];
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_texts() {
        let releases =
            r#"[{"tag_name": "v2", "n": 1.10}, {"tag_name": "v1", "n": -2e1}, {"n": true}]"#;
        let nested = r#" {"a": {"b": [{"v": "1"}, {"v": "\u0032"}], "b2": null},
            "versions": {"1.10": {}, "1.9": {}}, "twice": "1", "twice": "2"}"#;
        for (document, path, found) in [
            (releases, "[].tag_name", &["v2", "v1"][..]),
            (releases, "[1].tag_name", &["v1"]),
            (releases, "[].n", &["1.10", "-2e1"]),
            (releases, "[9].tag_name", &[]),
            (releases, "tag_name", &[]),
            (releases, "[].tag_name.x", &[]),
            (nested, "a.b[].v", &["1", "2"]),
            (nested, ".a.b[0].v", &["1"]),
            (nested, "versions{}", &["1.10", "1.9"]),
            (nested, "versions{}[]", &[]),
            (nested, "twice", &["2"]),
            (nested, "a.c", &[]),
            (nested, "[]", &[]),
            (r#"["1", "2"]"#, "[]", &["1", "2"]),
            (" 1.20\n", "", &["1.20"]),
        ] {
            let document: &RawValue = serde_json::from_str(document).unwrap();
            assert_eq!(texts_at(document, path).unwrap(), found, "{path}");
        }
        let releases: &RawValue = serde_json::from_str(releases).unwrap();
        for bad in ["[", "[x]", "a..b", "a[]b"] {
            assert!(texts_at(releases, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn long_lists_and_objects_are_refused() {
        let list = |count: usize| format!("[{}\"v\"]", "0,".repeat(count - 1));
        let read = |document: &str, path: &str| {
            let document: &RawValue = serde_json::from_str(document).unwrap();
            texts_at(document, path)
        };
        assert_eq!(read(&list(MOST_VALUES), "[]").unwrap().len(), MOST_VALUES);
        let too_long = |path: &str| Err(JsonPathError::TooLong(path.into()));
        assert_eq!(read(&list(MOST_VALUES + 1), "[]"), too_long("[]"));
        let half = list(MOST_VALUES / 2 + 1);
        assert_eq!(read(&format!("[{half},{half}]"), "[][]"), too_long("[][]"));
        let members: String = (0..MOST_VALUES).map(|n| format!("\"{n}\":0,")).collect();
        let object = format!("{{{members}\"v\":0}}");
        assert_eq!(read(&object, "{}"), too_long("{}"));
        assert_eq!(read(&object, "v"), too_long("v"));
    }
}
