//! Artifacts of items that have no manifest of their own: files, sets of packages, git repositories
//! and providers. Their manifests are computed from the lock alone, so every command gets the same
//! bytes.

use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, media_type};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Display;

/// The annotation with the URL of a layer's file.
pub(crate) const URL: &str = "dev.landfall.url";

/// The annotation with the name of a layer's file (image-spec, annotations.md).
pub(crate) const TITLE: &str = "org.opencontainers.image.title";

/// The config of an artifact that needs none.
pub(crate) fn empty_config() -> EntryPart {
    computed(b"{}".to_vec(), media_type::OCI_EMPTY)
}

/// A part whose bytes are computed from the lock.
pub(crate) fn computed(bytes: Vec<u8>, media_type: &'static str) -> EntryPart {
    EntryPart {
        descriptor: Descriptor::of(&bytes, media_type),
        origin: PartOrigin::Computed(bytes),
    }
}

/// A layer of a manifest. Its annotations may be null.
pub(crate) fn layer(blob: &Descriptor, annotations: Value) -> Value {
    let layer = json!({"mediaType": blob.media_type, "digest": blob.digest, "size": blob.size});
    annotated(layer, annotations)
}

/// The manifest of an artifact. Its annotations may be null.
pub(crate) fn manifest(
    artifact_type: &str,
    config: &Descriptor,
    layers: Vec<Value>,
    annotations: Value,
) -> EntryPart {
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": media_type::OCI_MANIFEST,
        "artifactType": artifact_type,
        "config": layer(config, Value::Null),
        "layers": layers,
    });
    let manifest = annotated(manifest, annotations).to_string();
    computed(manifest.into_bytes(), media_type::OCI_MANIFEST)
}

fn annotated(mut object: Value, annotations: Value) -> Value {
    if !annotations.is_null() {
        object["annotations"] = annotations;
    }
    object
}

/// The fault of an item whose `digest` in the lock is not `found`, that of its other fields.
pub(crate) fn digest_fault(name: &impl Display, digest: &Digest, found: &Digest) -> Option<String> {
    (found != digest)
        .then(|| format!("'{name}' has the digest {digest}, but its other fields have {found}"))
}

/// The entry of an artifact with the manifest or index `top` and the `parts` below it.
pub(crate) fn entry(
    kind: EntryKind,
    name: String,
    digest: &Digest,
    layout_name: String,
    artifact_type: &'static str,
    mut parts: Vec<EntryPart>,
    top: EntryPart,
) -> LockEntry {
    let descriptor = top.descriptor.clone();
    parts.push(top);
    LockEntry {
        kind,
        name,
        digest: digest.clone(),
        layout_name,
        top: descriptor,
        artifact_type: Some(artifact_type),
        parts,
        referrers: Vec::new(),
        referrer_blobs: BTreeSet::new(),
    }
}
