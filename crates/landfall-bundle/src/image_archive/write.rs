//! Writes an archive: a tar whose bytes do not depend on the machine or the time.

use super::plan::ArchivedImage;
use super::{ImageArchive, ImageArchiveError};
use crate::tar_header::{END, encode, encoded_len, padding};
use landfall_content::{BlobRead, CopyError, copy_checked};
use landfall_item::OneManifest;
use landfall_model::document::open_input;
use landfall_model::report::Progress;
use landfall_model::{Descriptor, LAYOUT_FILE, OCI_LAYOUT, media_type, sum_sizes};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

impl ImageArchive {
    /// Size of the archive in bytes.
    pub fn size(&self) -> u64 {
        let computed = self
            .computed
            .iter()
            .map(|(name, bytes)| member(name, bytes.len() as u64));
        let blobs = self
            .blobs
            .iter()
            .map(|(digest, size)| member(&digest.layout_path(), *size));
        sum_sizes(computed.chain(blobs).chain([END.len() as u64]))
    }

    /// The size of all blobs in bytes, which is the total of the progress.
    pub fn blob_bytes(&self) -> u64 {
        sum_sizes(self.blobs.values().copied())
    }

    /// Writes the archive to `out`, from the same content that it was planned from. Each blob is
    /// verified while it is copied; a damaged one leaves the archive without its end.
    ///
    /// # Errors
    /// If content cannot be read or is damaged, and if `out` fails.
    pub fn write(
        &self,
        blobs: &dyn BlobRead,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<(), ImageArchiveError> {
        for (name, bytes) in &self.computed {
            let parts = [
                &encode(name, bytes.len() as u64),
                &bytes[..],
                zero_padding(bytes.len() as u64),
            ];
            parts
                .into_iter()
                .try_for_each(|part| out.write_all(part))
                .map_err(ImageArchiveError::Write)?;
        }
        for (digest, size) in &self.blobs {
            out.write_all(&encode(&digest.layout_path(), *size))
                .map_err(ImageArchiveError::Write)?;
            let copied = copy_checked(blobs, digest, *size, |piece| {
                progress.bytes(piece.len() as u64);
                out.write_all(piece)
            });
            copied.map_err(|error| match error {
                CopyError::Content(error) => ImageArchiveError::Content(error),
                CopyError::Write(error) => ImageArchiveError::Write(error),
            })?;
            out.write_all(zero_padding(*size))
                .map_err(ImageArchiveError::Write)?;
        }
        // written last, so that an archive that was cut off is not a complete tar
        out.write_all(&END)
            .and_then(|()| out.flush())
            .map_err(ImageArchiveError::Write)
    }
}

/// Whether the file at `path` begins like an archive that [`ImageArchive::write`] writes. Archives
/// of other programs have other times or modes in the header of their first member.
pub fn is_image_archive(path: &Path) -> bool {
    let mut first = encode(LAYOUT_FILE, OCI_LAYOUT.len() as u64);
    first.extend(OCI_LAYOUT);
    let mut found = Vec::new();
    open_input(path)
        .and_then(|file| file.take(first.len() as u64).read_to_end(&mut found))
        .is_ok_and(|_| found == first)
}

fn zero_padding(size: u64) -> &'static [u8] {
    &END[..padding(size)]
}

/// The size of a member in the tar, with header and padding.
fn member(name: &str, size: u64) -> u64 {
    encoded_len(name) as u64 + size + padding(size) as u64
}

// `index.json`: the names in an archive, and the manifests that they point to (image-spec,
// image-layout.md).

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
