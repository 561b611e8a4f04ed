//! Paths into JSON documents that list versions: `[].tag_name`, `items[0].latest`, `versions{}`.

use serde_json::Value;

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

/// The strings and numbers at `path` in `document`, in the order of the document.
pub(super) fn texts_at(document: &Value, path: &str) -> Result<Vec<String>, InvalidJsonPath> {
    let mut found = vec![document.clone()];
    for step in steps(path).ok_or_else(|| InvalidJsonPath(path.to_owned()))? {
        found = found
            .into_iter()
            .flat_map(|value| follow(value, &step))
            .collect();
    }
    let texts = found.into_iter().filter_map(|value| match value {
        Value::String(text) => Some(text),
        // some documents write a version such as 1.5 as a number
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    Ok(texts.collect())
}

fn follow(value: Value, step: &JsonPathStep<'_>) -> Vec<Value> {
    match (step, value) {
        (JsonPathStep::Key(key), Value::Object(mut members)) => {
            members.remove(*key).into_iter().collect()
        }
        (JsonPathStep::Each, Value::Array(elements)) => elements,
        (JsonPathStep::At(at), Value::Array(mut elements)) if *at < elements.len() => {
            vec![elements.swap_remove(*at)]
        }
        // the keys of an object are versions in some documents: `{"versions": {"1.0": {}}}`
        (JsonPathStep::Keys, Value::Object(members)) => members
            .into_iter()
            .map(|(key, _)| Value::String(key))
            .collect(),
        // a step that does not fit selects nothing: elements of a list may have different keys
        _ => Vec::new(),
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
    use serde_json::json;

    #[test]
    fn a_path_leads_to_texts() {
        let releases = json!([{"tag_name": "v2", "n": 1.5}, {"tag_name": "v1"}, {"draft": true}]);
        let nested =
            json!({"a": {"b": [{"v": "1"}, {"v": "2"}]}, "versions": {"1.0": {}, "1.1": {}}});
        for (document, path, found) in [
            (&releases, "[].tag_name", &["v2", "v1"][..]),
            (&releases, "[1].tag_name", &["v1"]),
            (&releases, "[].n", &["1.5"]),
            (&releases, "[9].tag_name", &[]),
            (&nested, "a.b[].v", &["1", "2"]),
            (&nested, ".a.b[0].v", &["1"]),
            (&nested, "versions{}", &["1.0", "1.1"]),
            (&nested, "a.c", &[]),
            (&json!(["1", "2"]), "[]", &["1", "2"]),
        ] {
            assert_eq!(texts_at(document, path).unwrap(), found, "{path}");
        }
        for bad in ["[", "[x]", "a..b", "a[]b"] {
            assert!(texts_at(&releases, bad).is_err(), "{bad}");
        }
    }
}
