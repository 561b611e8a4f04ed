//! Helpers to read YAML of other tools: any number of documents, with keys that may be unknown.

use super::imported::{ImportPosition, ImportSource, ImportedItems};
use landfall_model::document::{self, Diagnostic, yaml};
use serde_yaml::{Mapping, Value};

/// The mappings in `source`, one for each document that is not empty.
pub(super) fn documents(source: &ImportSource) -> Result<Vec<Mapping>, Box<Diagnostic>> {
    let text = source.text.trim_start_matches('\u{feff}');
    // a single document is parsed like a manifest, so that errors have a position
    if !text.lines().skip(1).any(|line| line.starts_with("---")) {
        return document::read::<Option<Mapping>>(&source.file, text)
            .map(|read| read.into_iter().collect());
    }
    let mut all = Vec::new();
    for document in yaml::documents(text) {
        match document {
            Ok(Value::Mapping(mapping)) => all.push(mapping),
            Ok(Value::Null) => {}
            Ok(_) => {
                return Err(
                    source.format_error("a file of mappings", "each document must be a mapping")
                );
            }
            Err(error) => {
                return Err(source.format_error(
                    &format!("a valid YAML file ({error})"),
                    "fix it; lines are counted from the start of the file",
                ));
            }
        }
    }
    Ok(all)
}

/// The text, number or boolean at `key`, as text.
pub(super) fn text(map: &Mapping, key: &str) -> Option<String> {
    scalar(map.get(key)?)
}

/// A text, number or boolean as text.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    }
}

/// The entry `value` of a list as a mapping. An entry of another form is reported, not imported.
pub(super) fn mapping<'v>(
    imported: &mut ImportedItems,
    at: ImportPosition<'_>,
    value: &'v Value,
) -> Option<&'v Mapping> {
    let mapping = value.as_mapping();
    if mapping.is_none() {
        let what = scalar(value).unwrap_or_else(|| "this entry".into());
        imported.not_imported(at, &what, "it is not a mapping of keys and values");
    }
    mapping
}

/// The mapping that is the value of `key`.
pub(super) fn map<'m>(outer: &'m Mapping, key: &str) -> Option<&'m Mapping> {
    outer.get(key).and_then(Value::as_mapping)
}

/// The elements of the list at `key`; empty if there is none.
pub(super) fn list<'m>(outer: &'m Mapping, key: &str) -> &'m [Value] {
    outer
        .get(key)
        .and_then(Value::as_sequence)
        .map_or(&[], Vec::as_slice)
}

/// The texts of the list, or the one text, at `key`.
pub(super) fn texts(outer: &Mapping, key: &str) -> Vec<String> {
    match outer.get(key) {
        Some(Value::Sequence(values)) => values.iter().filter_map(scalar).collect(),
        Some(value) => scalar(value).into_iter().collect(),
        None => Vec::new(),
    }
}

/// Records each key of `map` that is not `known` as a setting that a manifest cannot express.
pub(super) fn note_other_keys(
    imported: &mut ImportedItems,
    at: ImportPosition<'_>,
    map: &Mapping,
    known: &[&str],
) {
    for key in map
        .keys()
        .filter_map(scalar)
        .filter(|key| !known.contains(&key.as_str()))
    {
        imported.note(at, &format!("`{key}` is not imported"));
    }
}
