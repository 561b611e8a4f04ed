//! Builds Kubernetes objects as YAML, with their keys in the customary order.

use landfall_model::document::with_quoted_words;
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

/// Serializes `value` as a YAML document. Texts that are booleans or numbers in YAML 1.1 are
/// quoted, because Kubernetes reads that version.
pub(super) fn document(value: &Value) -> String {
    // serializing strings, numbers, lists and mappings cannot fail
    let text = serde_yaml::to_string(value).unwrap_or_default();
    with_quoted_words(&text).into_owned()
}

/// The rule for names of objects (RFC 1123 subdomain).
pub(super) const OBJECT_NAME: &str = "the name of an object has at most 253 characters, only \
                                      lower-case letters, digits, - and ., and each part between \
                                      dots starts and ends with a letter or digit";

/// Whether Kubernetes accepts `name` as the name of an object.
pub(super) fn is_object_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= 253
        && name.split('.').all(|part| {
            !part.is_empty()
                && part.chars().all(is_allowed)
                && !part.starts_with('-')
                && !part.ends_with('-')
        })
}

/// Returns the `metadata` of an object.
pub(super) fn metadata(name: &str, namespace: Option<&str>) -> Value {
    map([("name", name.into()), ("namespace", optional(namespace))])
}

/// Returns an object whose content is one entry, such as `spec`.
pub(super) fn object(
    api_version: &str,
    kind: &str,
    metadata: Value,
    content: (&str, Value),
) -> Value {
    map([
        ("apiVersion", api_version.into()),
        ("kind", kind.into()),
        ("metadata", metadata),
        content,
    ])
}

/// Returns the `KubeadmControlPlane` of Cluster API with the kubeadm configuration `spec`.
pub(super) fn kubeadm_control_plane(metadata: Value, spec: Value) -> Value {
    object(
        "controlplane.cluster.x-k8s.io/v1beta1",
        "KubeadmControlPlane",
        metadata,
        ("spec", map([("kubeadmConfigSpec", spec)])),
    )
}

/// Returns the `KubeadmConfigTemplate` of Cluster API with the kubeadm configuration `spec`.
pub(super) fn kubeadm_config_template(metadata: Value, spec: Value) -> Value {
    object(
        "bootstrap.cluster.x-k8s.io/v1beta1",
        "KubeadmConfigTemplate",
        metadata,
        ("spec", map([("template", map([("spec", spec)]))])),
    )
}

/// Returns a Secret of the type `kind` (`Opaque` if `None`) with these keys and values.
pub(super) fn secret(
    metadata: Value,
    kind: Option<&str>,
    texts: impl IntoIterator<Item = (impl Into<Value>, impl Into<Value>)>,
) -> Value {
    let data: Mapping = texts
        .into_iter()
        .map(|(key, text)| (key.into(), text.into()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_kubernetes_would_take_for_another_type_are_quoted() {
        let labels = map([
            ("cluster", "no".into()),
            ("password", "1_000".into()),
            ("lines", "on\nno: off\n".into()),
            ("is", true.into()),
        ]);
        assert_eq!(
            document(&labels),
            "cluster: 'no'\npassword: '1_000'\nlines: |\n  on\n  no: off\nis: true\n"
        );
        assert_eq!(document(&"on".into()), "'on'\n");
    }

    #[test]
    fn names_of_objects_are_lower_case() {
        for name in ["a", "osp-ubuntu", "v1.2-x.y", &"a".repeat(253)] {
            assert!(is_object_name(name), "{name}");
        }
        for name in [
            "",
            "Osp",
            "osp_ubuntu",
            "-a",
            "a-",
            ".a",
            "a.",
            "a..b",
            "a.-b",
            "../up",
            "\u{e4}",
            &"a".repeat(254),
        ] {
            assert!(!is_object_name(name), "{name}");
        }
    }
}
