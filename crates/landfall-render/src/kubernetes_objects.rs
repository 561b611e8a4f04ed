//! Builds Kubernetes objects as YAML, with their keys in the customary order. A member that is null
//! is not written.

use landfall_model::document::with_quoted_words;
use serde_json::{Value, json};

/// Returns the object `map` without its null members, or null if no other member remains.
pub(super) fn some(mut map: Value) -> Value {
    drop_nulls(&mut map);
    if map == json!({}) { Value::Null } else { map }
}

/// Returns the object `base` with the members of the object `more`.
pub(super) fn with(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        base.extend(more);
    }
    base
}

/// Serializes `value` as a YAML document. Texts that are booleans or numbers in YAML 1.1 are
/// quoted, because Kubernetes reads that version.
pub(super) fn document(value: &Value) -> String {
    let mut value = value.clone();
    drop_nulls(&mut value);
    // serializing strings, numbers, lists and mappings cannot fail
    let text = serde_yaml::to_string(&value).unwrap_or_default();
    with_quoted_words(&text).into_owned()
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The rule for names of objects (RFC 1123 subdomain).
pub(super) const OBJECT_NAME: &str = "the name of an object has at most 253 characters, only \
                                      lower-case letters, digits, - and ., and each part between \
                                      dots starts and ends with a letter or digit";

/// Whether Kubernetes accepts `name` as the name of an object.
pub(super) fn is_object_name(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_part)
}

/// Whether the characters of `part` are those of a name without dots.
pub(super) fn is_part(part: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !part.is_empty()
        && part.chars().all(is_allowed)
        && !part.starts_with('-')
        && !part.ends_with('-')
}

/// Returns the `metadata` of an object.
pub(super) fn metadata(name: &str, namespace: Option<&str>) -> Value {
    json!({"name": name, "namespace": namespace})
}

/// Returns an object whose content is one entry, such as `spec`.
pub(super) fn object(
    api_version: &str,
    kind: &str,
    metadata: Value,
    (key, content): (&str, Value),
) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, (key): content})
}

/// Returns the `KubeadmControlPlane` of Cluster API with the kubeadm configuration `spec`.
pub(super) fn kubeadm_control_plane(metadata: Value, spec: Value) -> Value {
    object(
        "controlplane.cluster.x-k8s.io/v1beta1",
        "KubeadmControlPlane",
        metadata,
        ("spec", json!({"kubeadmConfigSpec": spec})),
    )
}

/// Returns the `KubeadmControlPlaneTemplate` of a `ClusterClass` with the kubeadm configuration
/// `spec`.
pub(super) fn kubeadm_control_plane_template(metadata: Value, spec: Value) -> Value {
    object(
        "controlplane.cluster.x-k8s.io/v1beta1",
        "KubeadmControlPlaneTemplate",
        metadata,
        (
            "spec",
            json!({"template": {"spec": {"kubeadmConfigSpec": spec}}}),
        ),
    )
}

/// Returns the `KubeadmConfigTemplate` of Cluster API with the kubeadm configuration `spec`.
pub(super) fn kubeadm_config_template(metadata: Value, spec: Value) -> Value {
    object(
        "bootstrap.cluster.x-k8s.io/v1beta1",
        "KubeadmConfigTemplate",
        metadata,
        ("spec", json!({"template": {"spec": spec}})),
    )
}

/// Returns the `KubeadmConfig` of a `MachinePool` of Cluster API with the kubeadm configuration
/// `spec`.
pub(super) fn kubeadm_config(metadata: Value, spec: Value) -> Value {
    object(
        "bootstrap.cluster.x-k8s.io/v1beta1",
        "KubeadmConfig",
        metadata,
        ("spec", spec),
    )
}

/// Returns a Secret of the type `kind` (`Opaque` if `None`) with these keys and values.
pub(super) fn secret(metadata: Value, kind: Option<&str>, texts: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "stringData": texts,
        "type": kind,
    })
}

/// Returns a file for nodes in a `KubeadmConfig` of Cluster API.
pub(super) fn node_file(path: &str, mode: u32, content: &str) -> Value {
    json!({
        "content": content,
        "owner": "root:root",
        "path": path,
        "permissions": format!("{mode:04o}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_kubernetes_would_take_for_another_type_are_quoted() {
        let labels = json!({
            "cluster": "no",
            "password": "1_000",
            "lines": "on\nno: off\n",
            "is": true,
        });
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
