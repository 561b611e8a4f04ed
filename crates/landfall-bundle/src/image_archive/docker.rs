//! `manifest.json`, by which `docker load` and `podman load` find images, and what these take.

use landfall_item::OneManifest;
use landfall_model::Descriptor;
use serde::Serialize;

/// Name of the file.
pub(super) const MANIFEST_FILE: &str = "manifest.json";

/// Layers that every docker takes: plain tars and gzipped ones.
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

/// One image of `manifest.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Saved {
    config: String,
    repo_tags: Vec<String>,
    layers: Vec<String>,
}

impl Saved {
    /// The image of `one` with these tags.
    pub(super) fn of(one: &OneManifest, tags: impl IntoIterator<Item = String>) -> Saved {
        let path = |blob: &Descriptor| blob.digest.layout_path();
        Saved {
            config: path(&one.config),
            repo_tags: tags.into_iter().collect(),
            layers: one.layers.iter().map(path).collect(),
        }
    }
}

/// The media type of the first layer that docker does not take.
pub(super) fn strange_layer(one: &OneManifest) -> Option<&str> {
    let types = one.layers.iter().map(|layer| &*layer.media_type);
    types.into_iter().find(|kind| !LAYERS.contains(kind))
}

/// `manifest.json` of these images.
pub(super) fn manifest(images: &[&Saved]) -> Vec<u8> {
    // texts alone, which nothing can be wrong with
    serde_json::to_vec(images).unwrap_or_default()
}
