//! Kubernetes objects as YAML, with their keys in the order in which people write them.

use serde_yaml::{Mapping, Value};

/// A mapping with these entries in this order. Those without a value are left out.
pub(super) fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let given = entries.into_iter().filter(|(_, value)| !value.is_null());
    Value::Mapping(
        given
            .map(|(key, value)| (key.into(), value))
            .collect::<Mapping>(),
    )
}

/// The same, or none where it has no entry.
pub(super) fn some_map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let map = map(entries);
    if map.as_mapping().is_some_and(Mapping::is_empty) {
        Value::Null
    } else {
        map
    }
}

/// The value, or none, which [`map`] leaves out.
pub(super) fn optional(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::Null, Into::into)
}

/// A list of texts.
pub(super) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Value {
    texts
        .into_iter()
        .map(|text| Value::String(text.into()))
        .collect::<Vec<_>>()
        .into()
}

/// `value` as a document of YAML.
pub(super) fn document(value: &Value) -> String {
    // a value of texts, numbers and lists always can be written
    serde_yaml::to_string(value).unwrap_or_default()
}

/// The `metadata` of an object.
pub(super) fn metadata(name: &str, namespace: Option<&str>) -> Value {
    map([("name", name.into()), ("namespace", optional(namespace))])
}

/// A Secret of this type with one text under each key; without a type, `Opaque`.
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

/// A file of a node in a kubeadm configuration of Cluster API.
pub(super) fn node_file(path: &str, mode: u32, content: &str) -> Value {
    map([
        ("content", content.into()),
        ("owner", "root:root".into()),
        ("path", path.into()),
        ("permissions", format!("{mode:04o}").into()),
    ])
}
