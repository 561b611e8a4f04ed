//! Builds Kubernetes objects as YAML, with their keys in the customary order.

use serde_yaml::{Mapping, Value};

/// Returns a mapping with these entries, in this order and without those that are null.
pub(super) fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let present = entries.into_iter().filter(|(_, value)| !value.is_null());
    Value::Mapping(
        present
            .map(|(key, value)| (key.into(), value))
            .collect::<Mapping>(),
    )
}

/// Like [`map`], but null if no entry remains.
pub(super) fn some_map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let map = map(entries);
    if map.as_mapping().is_some_and(Mapping::is_empty) {
        Value::Null
    } else {
        map
    }
}

/// Returns the value, or null, which [`map`] omits.
pub(super) fn optional(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::Null, Into::into)
}

/// Returns a list of strings.
pub(super) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Value {
    texts
        .into_iter()
        .map(|text| Value::String(text.into()))
        .collect::<Vec<_>>()
        .into()
}

/// Serializes `value` as a YAML document.
pub(super) fn document(value: &Value) -> String {
    // serializing strings, numbers, lists and mappings cannot fail
    serde_yaml::to_string(value).unwrap_or_default()
}

/// Returns the `metadata` of an object.
pub(super) fn metadata(name: &str, namespace: Option<&str>) -> Value {
    map([("name", name.into()), ("namespace", optional(namespace))])
}

/// Returns a Secret of the type `kind` (`Opaque` if `None`) with these keys and values.
pub(super) fn secret(metadata: Value, kind: Option<&str>, texts: &[(&str, &str)]) -> Value {
    let data: Mapping = texts
        .iter()
        .map(|(key, text)| ((*key).into(), (*text).into()))
        .collect();
    map([
        ("apiVersion", "v1".into()),
        ("kind", "Secret".into()),
        ("metadata", metadata),
        ("stringData", Value::Mapping(data)),
        ("type", optional(kind)),
    ])
}

/// Returns a file for nodes in a `KubeadmConfig` of Cluster API.
pub(super) fn node_file(path: &str, mode: u32, content: &str) -> Value {
    map([
        ("content", content.into()),
        ("owner", "root:root".into()),
        ("path", path.into()),
        ("permissions", format!("{mode:04o}").into()),
    ])
}
