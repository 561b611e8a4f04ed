//! Paths into JSON documents that list versions: `[].tag_name`, `items[0].latest`, `versions{}`.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A text that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a path: write keys with dots between them, `[]` for every element of a list, \
     `[0]` for one, `{{}}` for the keys of an object"
)]
pub(super) struct InvalidJsonPath(String);

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

/// The members of an object, in the order of the document.
struct JsonMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonMembers<'a>, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = JsonMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(JsonMembers(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// The strings, numbers and keys at `path` in `document`, in the order of the document. Numbers are
/// as they are written: `1.10` is not the same version as `1.1`.
pub(super) fn texts_at(document: &RawValue, path: &str) -> Result<Vec<String>, InvalidJsonPath> {
    let mut found = vec![JsonNode::Value(document)];
    for step in steps(path).ok_or_else(|| InvalidJsonPath(path.to_owned()))? {
        found = found
            .into_iter()
            .flat_map(|node| match node {
                JsonNode::Value(value) => follow(value.get(), &step),
                JsonNode::Name(_) => Vec::new(),
            })
            .collect();
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

/// The values to which `step` leads from `value`. A step that does not fit leads to none: elements
/// of a list may have different keys.
fn follow<'a>(value: &'a str, step: &JsonPathStep<'_>) -> Vec<JsonNode<'a>> {
    let members = || match serde_json::from_str(value) {
        Ok(JsonMembers(members)) => members,
        Err(_) => Vec::new(),
    };
    let elements = || serde_json::from_str::<Vec<&RawValue>>(value).unwrap_or_default();
    match step {
        JsonPathStep::Key(key) => {
            // if a document has a key twice, the last one counts
            let found = members().into_iter().rfind(|(name, _)| name == key);
            found
                .into_iter()
                .map(|(_, value)| JsonNode::Value(value))
                .collect()
        }
        JsonPathStep::Each => elements().into_iter().map(JsonNode::Value).collect(),
        JsonPathStep::At(at) => {
            let found = elements().into_iter().nth(*at);
            found.map(JsonNode::Value).into_iter().collect()
        }
        // the keys of an object are versions in some documents: `{"versions": {"1.0": {}}}`
        JsonPathStep::Keys => {
            let names = members().into_iter().map(|(name, _)| name);
            names.map(JsonNode::Name).collect()
        }
    }
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
}
