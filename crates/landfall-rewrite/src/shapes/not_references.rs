//! What only looks like a reference, or must not be changed where it stands: it is reported, and
//! left.

use crate::text::{CRD_SCHEMA, MIRROR_SET};
use crate::walk::{Members, Shape, Surroundings};
use crate::yaml::{Entry, Node, member, value};

pub(super) struct NotReferences;

impl Shape for NotReferences {
    fn skips(&self, root: &Node<'_>) -> bool {
        is_our_own(root)
    }

    fn keeps(&self, members: &Members<'_>) -> Option<&'static str> {
        let has = |key: &str| member(members.entries, key).is_some();
        match members.kind {
            "CustomResourceDefinition" => Some(CRD_SCHEMA),
            "ImageStreamTag" | "ImageStream" | "ImageStreamImage" | "ImageStreamMapping"
                if !has("spec") =>
            {
                Some("it is the name of an OpenShift image stream")
            }
            _ => value(members.entries, "$schema")
                .filter(|_| has("properties"))
                .map(|_| "it stands in a JSON schema"),
        }
    }

    fn entry<'s>(&self, members: &Members<'s>, _value: &'s Node<'s>, below: &mut Surroundings<'s>) {
        if let (Some(key), None) = (below.key, below.keep) {
            below.keep = why_kept(key, members.around.key, members.entries);
        }
    }
}

/// Whether a document is a manifest, lock, site or other input of landfall: these name things as
/// upstream does, and must continue to.
pub(crate) fn is_our_own(root: &Node<'_>) -> bool {
    let Node::Mapping(entries, _) = root else {
        return false;
    };
    let lock = || {
        let Some(Node::Sequence(items, _)) =
            member(entries, "images").or_else(|| member(entries, "files"))
        else {
            return false;
        };
        let Some(Node::Mapping(item, _)) = items.first() else {
            return false;
        };
        ["name", "digest", "size"]
            .iter()
            .all(|key| value(item, key).is_some())
    };
    value(entries, "apiVersion").is_some_and(|value| value.starts_with("landfall/"))
        || (member(entries, "version").is_some() && lock())
}

/// Why nothing under `key` of a mapping with `entries`, itself under `above`, may be changed, if
/// so.
fn why_kept(key: &str, above: Option<&str>, entries: &[Entry<'_>]) -> Option<&'static str> {
    match (key, above) {
        ("openAPIV3Schema", _) => Some(CRD_SCHEMA),
        // a checksum in an annotation guards it (Knative)
        ("_example", Some("data")) => {
            Some("it is an example that an annotation has the checksum of")
        }
        (
            "imageContentSources"
            | "imageDigestMirrors"
            | "imageTagMirrors"
            | "repositoryDigestMirrors",
            _,
        ) => Some(MIRROR_SET),
        ("source", _) if member(entries, "mirrors").is_some() => Some(MIRROR_SET),
        _ => None,
    }
}
