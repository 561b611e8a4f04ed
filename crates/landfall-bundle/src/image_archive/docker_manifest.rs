//! `manifest.json`, in which `docker load` and `podman load` look up images, and the layer types
//! that every docker version accepts.

use landfall_item::OneManifest;
use serde::Serialize;

/// The name of the file in the archive.
pub(super) const MANIFEST_FILE: &str = "manifest.json";

/// The layer types that every docker version accepts: tar, and tar with gzip.
const LAYERS: [&str; 8] = [
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
];

/// The record of an image in `manifest.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DockerImage {
    config: String,
    repo_tags: Vec<String>,
    layers: Vec<String>,
}

impl DockerImage {
    /// The record of an image with these tags.
    pub(super) fn of(one: &OneManifest, tags: impl IntoIterator<Item = String>) -> DockerImage {
        DockerImage {
            config: one.config.digest.layout_path(),
            repo_tags: tags.into_iter().collect(),
            layers: one
                .layers
                .iter()
                .map(|layer| layer.digest.layout_path())
                .collect(),
        }
    }
}

/// The media type of the first layer that not every docker version accepts.
pub(super) fn unsupported_layer_type(one: &OneManifest) -> Option<&str> {
    let types = one.layers.iter().map(|layer| &*layer.media_type);
    types.into_iter().find(|kind| !LAYERS.contains(kind))
}

/// Serializes `manifest.json` with these images.
pub(super) fn manifest(images: &[&DockerImage]) -> Vec<u8> {
    // serializing plain strings cannot fail
    serde_json::to_vec(images).unwrap_or_default()
}
