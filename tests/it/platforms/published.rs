//! Kubernetes objects in the golden files have only published fields with values of the published
//! types: `tests/data/published-fields.yaml` lists them.

use serde::Deserialize;
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The fields of each kind: the type of each field, by its path.
type Fields = BTreeMap<String, BTreeMap<String, String>>;

/// Adds the path and the type of each scalar below `value` to `found`. `path` is the path of
/// `value`. A `*` in a path of `known` matches any key, and replaces the key in `found`.
fn fields(
    value: &Value,
    path: &str,
    known: &BTreeMap<String, String>,
    found: &mut Vec<(String, &'static str)>,
) {
    let joined = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match value {
        Value::Mapping(map) => {
            let any = joined("*");
            let is_free = known.keys().any(|known| known.starts_with(&any));
            for (key, value) in map {
                let key = if is_free {
                    any.clone()
                } else {
                    joined(key.as_str().unwrap())
                };
                fields(value, &key, known, found);
            }
        }
        Value::Sequence(items) => {
            items
                .iter()
                .for_each(|item| fields(item, &format!("{path}[]"), known, found));
        }
        Value::String(_) => found.push((path.to_owned(), "text")),
        Value::Bool(_) => found.push((path.to_owned(), "truth")),
        Value::Number(_) => found.push((path.to_owned(), "number")),
        other => panic!("{path}: {other:?}"),
    }
}

fn published() -> Fields {
    serde_yaml::from_str(include_str!("../../data/published-fields.yaml")).unwrap()
}

/// Asserts that all values of `document` are published fields of its kind, with their types.
/// Returns whether it has a kind, which must be known.
fn has_published_fields(document: &Value, published: &Fields, file: &str) -> bool {
    let Some(kind) = document["kind"].as_str() else {
        return false;
    };
    let known = published
        .get(kind)
        .unwrap_or_else(|| panic!("{file}: published-fields.yaml has no kind {kind}"));
    let mut found = Vec::new();
    fields(document, "", known, &mut found);
    for (field, of_type) in found {
        assert_eq!(
            known.get(&field).map(String::as_str),
            Some(of_type),
            "{file}: {field}"
        );
    }
    true
}

/// Like [`has_published_fields`], for a document that must have a kind.
pub fn assert_published(document: &Value, file: &str) {
    assert!(
        has_published_fields(document, &published(), file),
        "{file}: {:?}",
        document["kind"]
    );
}

#[test]
#[should_panic(expected = "app.yaml: published-fields.yaml has no kind Application")]
fn an_unknown_kind_is_a_failure() {
    let document = serde_yaml::from_str("kind: Application\n").unwrap();
    has_published_fields(&document, &published(), "app.yaml");
}

#[test]
fn rendered_documents_have_only_published_fields() {
    let published = published();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/platforms");
    let mut kinds = 0;
    for (path, text) in super::files(&folder) {
        if path.extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        for document in serde_yaml::Deserializer::from_str(&text) {
            let document = Value::deserialize(document).unwrap();
            kinds += usize::from(has_published_fields(
                &document,
                &published,
                &path.display().to_string(),
            ));
        }
    }
    assert!(kinds > 20, "{kinds}");
}
