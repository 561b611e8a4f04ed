//! Values that only look like references or must not be changed: they are reported and left
//! unchanged. landfall's own documents are skipped without a report.

use crate::text::{CRD_SCHEMA, MIRROR_SET};
use crate::walk::{Collects, MappingContext, NodeContext};
use crate::yaml::{YamlEntry, YamlNode, items_of, scalar_of, text_of, value_of};

/// Skips landfall's own documents, and the candidates in schemas.
pub(super) fn skips(root: &YamlNode<'_>) -> Collects {
    let entries = root.entries();
    let is_our_own = is_our_own(entries);
    Collects {
        occurrences: is_our_own,
        // keys like `image` describe fields
        candidates: is_our_own || text_of(entries, "kind") == Some("CustomResourceDefinition"),
    }
}

/// The reason why nothing in a mapping may be changed.
pub(super) fn keeps(members: &MappingContext<'_>) -> Option<&'static str> {
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

/// Marks values that are kept because of their key.
pub(super) fn mark_kept(
    members: &MappingContext<'_>,
    _value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
) {
    if let (Some(key), None) = (child.key, child.keep) {
        child.keep = reason_to_keep(key, members);
    }
}

/// Whether a document is a manifest, lock, site or other input of landfall. These use upstream
/// names on purpose.
fn is_our_own(entries: &[YamlEntry<'_>]) -> bool {
    scalar_of(entries, "apiVersion").is_some_and(|value| value.starts_with("landfall/"))
        || is_lock(entries)
}

/// The sections of a lock, each with the keys that all of its items have.
const LOCK_SECTIONS: [(&str, &[&str]); 8] = [
    ("images", &["name", "digest", "size"]),
    ("files", &["name", "digest", "size"]),
    ("charts", &["name", "digest", "size"]),
    ("packages", &["name", "digest", "sources"]),
    ("git", &["name", "digest", "refs"]),
    ("providers", &["name", "digest", "packages"]),
    ("missing", &["kind", "name", "reason", "until"]),
    ("unresolved", &["kind", "name", "cause"]),
];

/// Whether a document with these `entries` at its root is a lock, which has no `apiVersion`.
fn is_lock(entries: &[YamlEntry<'_>]) -> bool {
    let has_item = |(section, keys): &(&str, &[&str])| {
        let first = items_of(entries, section).first();
        first.is_some_and(|item| {
            keys.iter()
                .all(|key| value_of(item.entries(), key).is_some())
        })
    };
    value_of(entries, "version").is_some() && LOCK_SECTIONS.iter().any(has_item)
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
        // containers-policy.json(5), and `ImagePolicy` of OpenShift
        ("signedIdentity", _) => Some("it is the name in a signature"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{becomes, run_as, stays};
    use crate::{TextSyntax, scan};

    #[test]
    fn a_lock_with_items_of_any_kind_is_not_changed() {
        let digest = landfall_model::Digest::sha256(b"x");
        for section in [
            "images:\n- {name: 'quay.io/a/b:v1', digest: D, mediaType: m, size: 1}",
            "images: []\nfiles:\n- {name: 'https://h/x', digest: D, size: 1}",
            "files: []\ncharts:\n- {name: 'oci://quay.io/c:1', digest: D, size: 1, images: ['quay.io/a/b:v1']}",
            "packages:\n- {name: 'apt:x', digest: D, architectures: [amd64], sources: []}",
            "git:\n- {name: 'git+https://h/a', digest: D, wanted: [], refs: []}",
            "providers:\n- {name: 'provider:h/a/b:1', digest: D, packages: []}",
            "missing:\n- {kind: image, name: 'quay.io/a/b:v1', reason: r, until: '2027-01-31'}",
            "unresolved:\n- {kind: image, name: 'quay.io/a/b:v1', cause: c}",
        ] {
            // `name` has a reference that would be changed in any other document
            let lock = format!("version: 1\nname: 'quay.io/a/b:v1'\n{section}\n...\n");
            let lock = lock.replace('D', &digest.to_string());
            assert_eq!(run_as(&lock, TextSyntax::Document), (lock.clone(), vec![]));
            let found = scan(&lock, TextSyntax::Document, &crate::tests::known()).found;
            assert_eq!(found, [], "{lock}");
        }
    }

    #[test]
    fn the_name_in_a_signature_is_not_changed() {
        let policy = |identity: &str| {
            format!(
                "{{\"quay.io/x\": [{{\"type\": \"sigstoreSigned\", \"signedIdentity\": {identity}}}]}}\n"
            )
        };
        for identity in [
            "{\"type\": \"remapIdentity\", \"prefix\": \"r:5/p/a\", \"signedPrefix\": \"quay.io/a/b\"}",
            "{\"type\": \"exactReference\", \"dockerReference\": \"quay.io/a/b:v1\"}",
        ] {
            stays(&policy(identity), "the name in a signature");
        }
    }

    #[test]
    fn a_list_of_images_with_a_version_is_not_a_lock() {
        becomes(
            "version: 1\nimages:\n- {name: 'quay.io/a/b:v1'}\nfiles: [x]\n",
            "version: 1\nimages:\n- {name: 'r:5/p/a/b:v1'}\nfiles: [x]\n",
        );
    }
}
