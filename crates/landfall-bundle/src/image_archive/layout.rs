//! `index.json`: the names in an archive, and the manifests that they point to (image-spec,
//! image-layout.md).

use super::image::ArchivedImage;
use landfall_model::{Descriptor, media_type};
use serde_json::json;
use std::collections::BTreeMap;

/// Serializes `index.json`, sorted by name. containerd and tools built on it read the name from the
/// first annotation, podman and skopeo from the second; some tools fall back to the other one.
pub(super) fn index(images: &[ArchivedImage]) -> Vec<u8> {
    let mut names: BTreeMap<&str, &Descriptor> = BTreeMap::new();
    for image in images {
        for name in &image.names {
            names.entry(name).or_insert(&image.top);
        }
    }
    let manifests = names.iter().map(|(name, top)| {
        json!({
            "mediaType": top.media_type, "digest": top.digest, "size": top.size,
            "annotations": {
                "io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": name,
            },
        })
    });
    let manifests: Vec<_> = manifests.collect();
    let index =
        json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": manifests});
    index.to_string().into_bytes()
}
