//! Reads documents of charts as Helm does. Helm accepts repeated keys and several documents;
//! landfall refuses both in its own documents.

use super::yaml_words::in_yaml_1_2;
use landfall_model::document::yaml::{self, YamlBudget};
use landfall_model::document::{self, Diagnostic};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

/// Reads the document in `text` into `T`. The last value of a repeated key counts, and several
/// documents are merged. Booleans and numbers of YAML 1.1 are what they are for Helm.
pub(super) fn read<T: DeserializeOwned>(
    file: &str,
    text: &str,
    budget: &mut YamlBudget,
) -> Result<T, Box<Diagnostic>> {
    let mut all = Value::Null;
    // the budget is charged first, because the tree of a text beyond the limits is large
    let merged = budget.charge(text).and_then(|()| {
        yaml::documents::<Value>(&in_yaml_1_2(text))
            .try_for_each(|document| document.map(|document| merge_over(&mut all, document)))
    });
    match merged {
        // an error of `from_value` has no position, so the text is read again to find it
        Ok(()) => serde_json::from_value(all).or_else(|_| document::read(file, text)),
        // `document::read` gives the error a position, but succeeds if only the shared budget is
        // exceeded
        Err(error) => match document::read::<IgnoredAny>(file, text) {
            Err(fault) => Err(fault),
            Ok(_) => {
                let file = file.to_owned();
                let text = text.to_owned();
                Err(Box::new(Diagnostic {
                    file,
                    text,
                    span: 0..0,
                    message: error.to_string(),
                    help: None,
                }))
            }
        },
    }
}

/// Merges the document `over` into `under`: mappings are merged, and any other value replaces the
/// old one. An empty document changes nothing.
fn merge_over(under: &mut Value, over: Value) {
    match (under, over) {
        (_, Value::Null) => {}
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge_key(under, key, value);
            }
        }
        (under, over) => *under = over,
    }
}

fn merge_key(under: &mut Map<String, Value>, key: String, value: Value) {
    match under.get_mut(&key) {
        Some(old) if old.is_object() && value.is_object() => merge_over(old, value),
        _ => drop(under.insert(key, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> String {
        read::<Value>("values.yaml", text, &mut YamlBudget::default())
            .map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn repeated_keys_and_several_documents_are_read_as_in_helm() {
        let comments = "# see [the docs\n".repeat(100) + &format!("# {}\n", "-".repeat(600));
        assert_eq!(values(&format!("{comments}a: 1\n")), "{\"a\":1}");
        assert_eq!(
            values("a: 1\nb: {c: 1, c: 2}\na: 3\n"),
            "{\"a\":3,\"b\":{\"c\":2}}"
        );
        assert_eq!(
            values("a: {b: 1}\nx: 1\n---\na: {c: 2}\nx: ~\n"),
            "{\"a\":{\"b\":1,\"c\":2},\"x\":null}"
        );
        assert_eq!(
            values("8080: x\ntrue: z\n"),
            "{\"8080\":\"x\",\"true\":\"z\"}"
        );
        assert_eq!(
            values("a: &a {b: 1}\nc: *a\n"),
            "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"
        );
    }

    #[test]
    fn invalid_yaml_is_refused_with_its_position() {
        assert!(
            values("a: 1\nb: [\n").starts_with("values.yaml:3:1: error:"),
            "{}",
            values("a: 1\nb: [\n")
        );
        assert!(values(&"[".repeat(100_000)).contains("nested deeper"));
        assert!(values(&"- ".repeat(50_000)).contains("nested deeper"));
    }
}
