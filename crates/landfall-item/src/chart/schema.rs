//! The URLs to which a JSON schema refers. helm requests them when it validates values against
//! `values.schema.json`.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use url::Url;

/// Keywords whose value is data, which may look like a schema.
const DATA: [&str; 5] = ["const", "enum", "examples", "example", "default"];
/// Keywords whose value has a schema for each of its keys.
const BY_NAME: [&str; 6] = [
    "properties",
    "patternProperties",
    "definitions",
    "$defs",
    "dependentSchemas",
    "dependencies",
];

/// The maximum number of bytes of all URLs that are resolved in a schema. A long URL of the schema
/// itself is a part of each relative reference, so a small archive could take any memory. Further
/// references are skipped.
const MAX_URL_BYTES: usize = 4 << 20;

/// Returns the http and https URLs of other documents to which the JSON schema `text` refers:
/// absolute references, those relative to the schema's own URL, and a dialect that validators do
/// not know. Empty if `text` is not JSON.
pub fn schema_urls(text: &str) -> BTreeSet<String> {
    let text = text.trim_start_matches('\u{feff}');
    let Ok(schema) = serde_json::from_str::<Value>(text) else {
        return BTreeSet::new();
    };
    let mut search = SchemaSearch {
        own: BTreeSet::new(),
        references: BTreeSet::new(),
        left: MAX_URL_BYTES,
    };
    search.schema(&schema, None);
    // a reference to a URL of the schema itself needs no request
    &search.references - &search.own
}

/// The URLs in a schema, without fragments.
struct SchemaSearch {
    /// The URLs of the schema and of the schemas inside it.
    own: BTreeSet<String>,
    references: BTreeSet<String>,
    /// What is left of [`MAX_URL_BYTES`].
    left: usize,
}

impl SchemaSearch {
    /// Searches `schema`, whose references are relative to `base`.
    fn schema(&mut self, schema: &Value, base: Option<&Url>) {
        match schema {
            Value::Array(schemas) => schemas.iter().for_each(|one| self.schema(one, base)),
            Value::Object(members) => self.members(members, base),
            _ => {}
        }
    }

    fn members(&mut self, members: &Map<String, Value>, base: Option<&Url>) {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        // draft 4 calls it `id`
        let own = text("$id").or_else(|| text("id"));
        let own = own.and_then(|id| self.resolve(id, base));
        self.own.extend(own.iter().map(without_fragment));
        let base = own.as_ref().or(base);
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let target = text(key).and_then(|reference| self.resolve(reference, base));
            self.references.extend(target.iter().map(without_fragment));
        }
        let dialect = text("$schema").and_then(|dialect| self.resolve(dialect, None));
        let is_known = |url: &Url| url.host_str() == Some("json-schema.org");
        let dialect = dialect.filter(|url| !is_known(url));
        self.references.extend(dialect.iter().map(without_fragment));
        for (key, value) in members {
            match value {
                Value::Object(schemas) if BY_NAME.contains(&key.as_str()) => {
                    schemas.values().for_each(|one| self.schema(one, base));
                }
                _ if DATA.contains(&key.as_str()) => {}
                value => self.schema(value, base),
            }
        }
    }

    /// The http or https URL that `reference` means in a schema with the URL `base`.
    fn resolve(&mut self, reference: &str, base: Option<&Url>) -> Option<Url> {
        let bytes = reference.len() + base.map_or(0, |base| base.as_str().len());
        self.left = self.left.checked_sub(bytes)?;
        let url = match base {
            Some(base) => base.join(reference).ok()?,
            None => Url::parse(reference).ok()?,
        };
        matches!(url.scheme(), "http" | "https").then_some(url)
    }
}

fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_all_urls_are_limited() {
        let references: Vec<String> = (0..1_000)
            .map(|number| format!(r#"{{"$ref": "{number}"}}"#))
            .collect();
        let schema = |id: &str| {
            let references = references.join(", ");
            schema_urls(&format!(r#"{{"$id": "{id}", "allOf": [{references}]}}"#))
        };
        assert_eq!(schema("https://k8s.test/a/").len(), 1_000);
        let long = format!("https://k8s.test/{}/", "a".repeat(64 << 10));
        let bytes: usize = schema(&long).iter().map(String::len).sum();
        assert!((1..=MAX_URL_BYTES).contains(&bytes), "{bytes}");
    }

    #[test]
    fn references_to_other_documents_are_found() {
        let k8s = "https://k8s.test/_definitions.json";
        for (schema, urls) in [
            (
                r#"{"$ref": "https://k8s.test/_definitions.json#/a"}"#,
                vec![k8s],
            ),
            (
                "\u{feff}{\"$ref\": \"HTTPS://K8S.test/_definitions.json\"}",
                vec![k8s],
            ),
            (
                r#"{"$id": "https://k8s.test/own.json", "items": [{"$ref": "_definitions.json"}]}"#,
                vec![k8s],
            ),
            (
                r#"{"id": "https://k8s.test/x/", "properties": {"enum": {"$ref": "../_definitions.json"}}}"#,
                vec![k8s],
            ),
            (
                r##"{"$id": "https://k8s.test/own.json", "allOf": [{"$ref": "#/$defs/a"},
                     {"$ref": "own.json#/$defs/a"}, {"$ref": "inner.json"}],
                     "$defs": {"a": {"$id": "inner.json", "$dynamicRef": "https://k8s.test/_definitions.json#x"}}}"##,
                vec![k8s],
            ),
            (
                r#"{"$schema": "https://k8s.test/_definitions.json#"}"#,
                vec![k8s],
            ),
            (
                r#"{"$schema": "http://json-schema.org/draft-07/schema#"}"#,
                vec![],
            ),
            // data, and references without a URL
            (
                r#"{"const": {"$ref": "https://a.test/x"}, "enum": [{"$ref": "https://a.test/x"}]}"#,
                vec![],
            ),
            (
                r#"{"examples": [{"$ref": "https://a.test/x"}], "default": {"$ref": "https://a.test/x"}}"#,
                vec![],
            ),
            (
                r##"{"$ref": "other.json", "items": {"$ref": "#/x"}, "description": "https://a.test"}"##,
                vec![],
            ),
            (
                r#"{"properties": {"$ref": {"type": "string"}, "u": {"$ref": "urn:x:y"}}}"#,
                vec![],
            ),
            ("no schema", vec![]),
        ] {
            let found = schema_urls(schema);
            assert!(found.iter().eq(urls.iter()), "{schema}: {found:?}");
        }
    }
}
