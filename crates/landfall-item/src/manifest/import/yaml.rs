//! Helpers to read YAML of other tools: any number of documents, with keys that may be unknown.

use super::imported::{ImportPosition, ImportSource, ImportedItems};
use crate::ManifestResult;
use landfall_model::document::{self, ScalarStyle, YamlDocuments, YamlNode, yaml};
use serde_yaml::{Mapping, Value};
use std::borrow::Cow;
use std::ops::Range;

/// The mappings in `source`, one for each document that is not empty, with merge keys (`<<`)
/// applied.
pub(super) fn documents(source: &ImportSource) -> ManifestResult<Vec<Mapping>> {
    let text = source.text.trim_start_matches('\u{feff}');
    // a single document is parsed like a manifest, so that errors have a position
    if !text.lines().skip(1).any(|line| line.starts_with("---")) {
        document::read::<Option<Mapping>>(&source.file, text)?;
    }
    let mut all = Vec::new();
    for document in yaml::documents::<Value>(&with_quoted_numbers(text)) {
        let document = document.and_then(|mut value| value.apply_merge().map(|()| value));
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

/// `text` with quotes around each number that would be written differently after it was read: the
/// tag `1.10` would become `1.1`. The tools read these values as texts. Values of charts are left
/// alone, because helm reads numbers in them as numbers.
fn with_quoted_numbers(text: &str) -> Cow<'_, str> {
    // the reader of values reports a text that is too large for a tree
    if yaml::check(text).is_err() {
        return Cow::Borrowed(text);
    }
    let mut numbers: Vec<Range<usize>> = Vec::new();
    // what is not YAML is reported by the reader of values
    for document in YamlDocuments::new(text, 0..text.len()).map_while(Result::ok) {
        let mut pending: Vec<&YamlNode> = document.root.iter().collect();
        while let Some(node) = pending.pop() {
            match node {
                YamlNode::Sequence(sequence) => pending.extend(&sequence.items),
                YamlNode::Mapping(mapping) => {
                    let entries = mapping.entries.iter();
                    pending.extend(
                        entries
                            .filter(|entry| !entry.key.is_text("values"))
                            .map(|entry| &entry.value),
                    );
                }
                YamlNode::Scalar(scalar)
                    if scalar.style == ScalarStyle::Plain
                        && scalar.tag().is_none()
                        && changes_as_number(&scalar.value) =>
                {
                    numbers.push(scalar.span.clone());
                }
                YamlNode::Scalar(_) | YamlNode::Alias(_) => {}
            }
        }
    }
    if numbers.is_empty() {
        return Cow::Borrowed(text);
    }
    numbers.sort_by_key(|span| span.start);
    let mut quoted = String::with_capacity(text.len() + 2 * numbers.len());
    let mut done = 0;
    for span in numbers {
        quoted.push_str(&text[done..span.start]);
        quoted.push('"');
        quoted.push_str(&text[span.clone()]);
        quoted.push('"');
        done = span.end;
    }
    quoted.push_str(&text[done..]);
    Cow::Owned(quoted)
}

/// Whether a plain scalar is a number that is written in another way than the reader of values
/// writes it.
fn changes_as_number(plain: &str) -> bool {
    let may_be_number = plain
        .trim_start_matches(['+', '-', '.'])
        .starts_with(|c: char| c.is_ascii_digit());
    may_be_number
        && matches!(yaml::from_str::<Value>(plain), Ok(Value::Number(number)) if number.to_string() != plain)
}

/// The text, number or boolean at `key`, as text.
pub(super) fn text(map: &Mapping, key: &str) -> Option<String> {
    scalar(map.get(key)?)
}

/// The `pattern` that is searched in a tag, as a pattern for the whole tag, with a group that
/// orders the tags.
pub(super) fn whole_tag_pattern(pattern: &str) -> String {
    // `^` and `$` belong to one of the alternatives, not to all of them
    if has_alternatives(pattern) {
        return format!("^(.*(?:{pattern}).*)$");
    }
    let before = if pattern.starts_with('^') { "" } else { ".*" };
    let after = if pattern.ends_with('$') { "" } else { ".*" };
    let inner = pattern.trim_start_matches('^').trim_end_matches('$');
    match (before, after) {
        ("", "") => format!("^({inner})$"),
        _ => format!("^({before}(?:{inner}){after})$"),
    }
}

/// Why tags are lost if a range of the other tool selects tags with a suffix, too.
pub(super) const NO_VARIANTS: &str = "a range selects no variants of versions, such as \
                                      1.2.3-alpine; if you need some, add an entry with a pattern";

/// The range with these bounds, as a manifest writes it. For the other tool, missing numbers of a
/// bound are 0, so that `<=1.9` is `<=1.9.0`; in a manifest, it includes 1.9.5.
pub(super) fn range_of<'b>(bounds: impl IntoIterator<Item = &'b str>) -> String {
    let bounds = bounds.into_iter().map(|bound| {
        let bound = bound.trim();
        let digits = bound
            .find(|c: char| c.is_ascii_alphanumeric())
            .unwrap_or(bound.len());
        let (operator, version) = bound.split_at(digits);
        let mut version = version.to_owned();
        if !matches!(operator.trim(), ">=" | "<") {
            let numbers = version.split('.').count();
            version.push_str(&".0".repeat(3_usize.saturating_sub(numbers)));
        }
        format!("{}{version}", operator.trim())
    });
    bounds.collect::<Vec<_>>().join(" ")
}

/// Whether `pattern` has a `|` outside of groups and classes.
fn has_alternatives(pattern: &str) -> bool {
    let mut depth = 0usize;
    let mut is_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => is_class = true,
            ']' => is_class = false,
            _ if is_class => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return true,
            _ => {}
        }
    }
    false
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

/// Reads the entries of the list `key` of `outer`, which must be mappings.
pub(super) fn for_each_mapping(
    imported: &mut ImportedItems,
    at: ImportPosition<'_>,
    outer: &Mapping,
    key: &str,
    mut read: impl FnMut(&mut ImportedItems, ImportPosition<'_>, &Mapping),
) {
    for (index, value) in list(outer, key).iter().enumerate() {
        let position = at.below(format_args!("{key}[{index}]"));
        let at = at.source.at(&position);
        if let Some(entry) = mapping(imported, at, value) {
            read(imported, at, entry);
        }
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

/// The mapping at `key` of `outer`. A value of another form is reported, not imported.
pub(super) fn mapping_at<'m>(
    imported: &mut ImportedItems,
    at: ImportPosition<'_>,
    outer: &'m Mapping,
    key: &str,
) -> Option<&'m Mapping> {
    let value = outer.get(key)?;
    if value.is_mapping() || value.is_null() {
        return value.as_mapping();
    }
    imported.not_imported(at, key, "it is not a mapping of keys and values");
    None
}

/// The mapping that is the value of `key`.
pub(super) fn map<'m>(outer: &'m Mapping, key: &str) -> Option<&'m Mapping> {
    outer.get(key).and_then(Value::as_mapping)
}

/// The elements of the list at `key`; empty if there is none. A single value is a list of one
/// element, so that the reader of the elements reports one of a wrong form.
pub(super) fn list<'m>(outer: &'m Mapping, key: &str) -> &'m [Value] {
    outer.get(key).map_or(&[], elements)
}

/// The elements of a value that is read as a list, as [`list`] reads it.
pub(super) fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Sequence(values) => values,
        Value::Null => &[],
        value => std::slice::from_ref(value),
    }
}

/// The texts of the list, or the one text, at `key`.
pub(super) fn texts(outer: &Mapping, key: &str) -> Vec<String> {
    list(outer, key).iter().filter_map(scalar).collect()
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

#[cfg(test)]
mod tests {
    use super::super::testing::import;

    #[test]
    fn tags_that_look_like_numbers_keep_their_text() {
        let tags = "1.10, 1e3, 0x10, 010, 1_000, 12345e6, 1.0, 3, '4.10', !!str 5.10, &a 6.10, *a";
        let imported = import(
            "skopeo-sync",
            &format!("h.test: {{images: {{x: [{tags}]}}}}\n"),
        );
        let names = imported.unwrap().images();
        let expected = [
            "010", "0x10", "1.0", "1.10", "12345e6", "1_000", "1e3", "3", "4.10", "5.10", "6.10",
        ];
        assert_eq!(names, expected.map(|tag| format!("h.test/x:{tag}")));
        // helm reads the same number from the values of a chart
        let chart = "{name: n, version: 1.10, values: {tag: 1.10}}";
        let text = format!(
            "kind: ImageSetConfiguration\nmirror: {{helm: {{repositories: [{{url: 'https://c.test', charts: [{chart}]}}]}}}}\n"
        );
        let imported = import("oc-mirror", &text).unwrap();
        let made = super::super::manifest_of(&imported, "n", "t");
        assert!(made.contains(r#"version: "1.10""#), "{made}");
        assert!(made.contains(r#"values: [{"tag":1.1}]"#), "{made}");
    }

    #[test]
    fn merge_keys_are_applied_in_one_document_and_in_several() {
        let text = "version: 1\nx-common: &common {type: image, platform: linux/arm64}\nsync:\n\
                    - {<<: *common, source: 'h.test/a:1', target: 't/a'}\n";
        for text in [text.to_owned(), format!("---\n{text}---\n{text}")] {
            let imported = import("regsync", &text).unwrap();
            let made = super::super::manifest_of(&imported, "n", "t");
            assert!(
                made.contains(r#"{ref: "h.test/a:1", platforms: [linux/arm64]}"#),
                "{made}"
            );
        }
    }

    #[test]
    fn values_of_another_form_are_imported_or_reported() {
        for (format, text) in [
            ("skopeo-sync", "h.test:\n  images: ['a:1']\n"),
            ("skopeo-sync", "h.test:\n  images: {a: [{b: c}]}\n"),
            ("skopeo-sync", "h.test:\n  images-by-semver: {a: {b: c}}\n"),
            (
                "regsync",
                "sync: {source: 'h.test/a', type: repository, tags: [a]}\n",
            ),
            (
                "regsync",
                "sync: [{source: 'h.test/a', type: repository, tags: {allow: [{a: b}]}}]\n",
            ),
            ("zarf", "kind: ZarfPackageConfig\ncomponents: [a]\n"),
            (
                "zarf",
                "kind: ZarfPackageConfig\ncomponents: [{name: a, charts: [b]}]\n",
            ),
            (
                "zarf",
                "kind: ZarfPackageConfig\ncomponents: [{name: a, images: {b: c}}]\n",
            ),
            (
                "hauler",
                "apiVersion: content.hauler.cattle.io/v1\nkind: Images\nspec: [a]\n",
            ),
            (
                "hauler",
                "apiVersion: content.hauler.cattle.io/v1\nkind: Images\nspec: {images: a}\n",
            ),
            ("oc-mirror", "kind: ImageSetConfiguration\nmirror: [a]\n"),
            (
                "oc-mirror",
                "kind: ImageSetConfiguration\nmirror: {helm: [a]}\n",
            ),
            (
                "oc-mirror",
                "kind: ImageSetConfiguration\nmirror: {platform: [a]}\n",
            ),
            (
                "oc-mirror",
                "kind: ImageSetConfiguration\nmirror: {helm: {repositories: [a]}}\n",
            ),
            (
                "oc-mirror",
                "kind: ImageSetConfiguration\nmirror: {helm: {repositories: [{url: 'https://c.test'}]}}\n",
            ),
            (
                "oc-mirror",
                "kind: ImageSetConfiguration\nmirror: {helm: {repositories: [{url: 'https://c.test', charts: [a]}]}}\n",
            ),
            (
                "imgpkg-lock",
                "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages: {a: b}\n",
            ),
            ("dt-lock", "kind: ImagesLock\nimages: {a: b}\n"),
            (
                "tkg-bom",
                "release: {version: v1}\ncomponents: {a: {images: {b: {imagePath: c, tag: d}}}}\n",
            ),
        ] {
            let imported = import(format, text).unwrap();
            assert_eq!(
                (imported.entries(), imported.not_imported.len()),
                (0, 1),
                "{format}: {text}: {:?}",
                imported.not_imported
            );
        }
    }
}
