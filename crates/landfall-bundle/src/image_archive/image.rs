//! One image of an archive.

use super::docker::Saved;
use landfall_model::{Descriptor, Digest};
use std::collections::BTreeSet;

/// An image of an archive.
#[derive(Debug)]
pub struct ArchivedImage {
    /// Its name in the lock.
    pub name: String,
    /// Its digest in the lock.
    pub digest: Digest,
    /// All names that it has in the archive.
    pub names: BTreeSet<String>,
    /// Size in bytes of all that is in the archive of it.
    pub bytes: u64,
    /// What its names stand at.
    pub top: Descriptor,
    /// Its part of `manifest.json`.
    pub(super) docker: Option<Saved>,
}
