//! Values that only look like references or must not be changed: they are reported and left
//! unchanged.

use crate::text::{CRD_SCHEMA, MIRROR_SET};
use crate::walk::{MappingContext, NodeContext, ReferenceShape};
use crate::yaml::{YamlEntry, YamlMapping, YamlNode, YamlSequence, scalar_of, value_of};

pub(super) struct NonReferenceShape;

impl ReferenceShape for NonReferenceShape {
    fn skips(&self, root: &YamlNode<'_>) -> bool {
        is_our_own(root)
    }

    fn keeps(&self, members: &MappingContext<'_>) -> Option<&'static str> {
        let has = |key: &str| value_of(members.entries, key).is_some();
        match members.kind {
            "CustomResourceDefinition" => Some(CRD_SCHEMA),
            // a reference to an object has no `spec`, unlike the object itself
            "ImageStreamTag" | "ImageStream" | "ImageStreamImage" | "ImageStreamMapping"
                if !has("spec") =>
            {
                Some("it is the name of an OpenShift image stream")
            }
            _ => scalar_of(members.entries, "$schema")
                .filter(|_| has("properties"))
                .map(|_| "it is in a JSON schema"),
        }
    }

    fn entry<'s>(
        &self,
        members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        child: &mut NodeContext<'s>,
    ) {
        if let (Some(key), None) = (child.key, child.keep) {
            child.keep = reason_to_keep(key, members);
        }
    }
}

/// Whether a document is a manifest, lock, site or other input of landfall. These use upstream
/// names on purpose.
pub(crate) fn is_our_own(root: &YamlNode<'_>) -> bool {
    let YamlNode::Mapping(YamlMapping { entries, .. }) = root else {
        return false;
    };
    scalar_of(entries, "apiVersion").is_some_and(|value| value.starts_with("landfall/"))
        || is_lock(entries)
}

/// Whether a document with these `entries` at its root is a lock, which has no `apiVersion`.
fn is_lock(entries: &[YamlEntry<'_>]) -> bool {
    let items = value_of(entries, "images").or_else(|| value_of(entries, "files"));
    let Some(YamlNode::Sequence(YamlSequence { items, .. })) = items else {
        return false;
    };
    let Some(YamlNode::Mapping(item)) = items.first() else {
        return false;
    };
    let keys = ["name", "digest", "size"];
    value_of(entries, "version").is_some()
        && keys
            .iter()
            .all(|key| scalar_of(&item.entries, key).is_some())
}

/// The reason why nothing under `key` may be changed. `members` is the mapping that contains `key`.
fn reason_to_keep(key: &str, members: &MappingContext<'_>) -> Option<&'static str> {
    match (key, members.around.key) {
        ("openAPIV3Schema", _) => Some(CRD_SCHEMA),
        // Knative's annotation `knative.dev/example-checksum` must match the example
        ("_example", Some("data")) => Some("an annotation contains the checksum of this example"),
        (
            "imageContentSources"
            | "imageDigestMirrors"
            | "imageTagMirrors"
            | "repositoryDigestMirrors",
            _,
        ) => Some(MIRROR_SET),
        ("source", _) if members.has_mirrors => Some(MIRROR_SET),
        _ => None,
    }
}
