//! An image in an archive.

use super::docker_manifest::DockerImage;
use landfall_model::{Descriptor, Digest};
use std::collections::BTreeSet;

/// An image in an archive.
#[derive(Debug)]
pub struct ArchivedImage {
    /// The name in the lock.
    pub name: String,
    /// The digest in the lock.
    pub digest: Digest,
    /// All names of the image in the archive.
    pub names: BTreeSet<String>,
    /// The size of its content in the archive, in bytes.
    pub bytes: u64,
    /// The manifest or index that the names point to.
    pub top: Descriptor,
    /// Its record in `manifest.json`; only in docker archives.
    pub(super) docker: Option<DockerImage>,
}
