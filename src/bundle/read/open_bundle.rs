//! What is known of an opened bundle: its index in memory, and where its bytes are.

use super::index::Index;
use super::recent_checks::RecentChecks;
use super::volume_reader::VolumeReader;
use crate::bundle::format::entry::TarEntry;
use crate::bundle::format::stored::ReadAt;
use crate::model::Digest;
use std::io;
use std::path::{Path, PathBuf};

/// An opened bundle, as all its readers share it.
#[derive(Debug)]
pub(crate) struct OpenBundle {
    pub path: PathBuf,
    pub volumes: VolumeReader,
    pub index: Index,
    /// The signature's text, as it stands in its entry.
    pub signature: Option<Vec<u8>>,
    /// Of frames that were checked before.
    pub(super) checks: RecentChecks,
    /// The places of all blobs, by digest.
    blobs: Vec<usize>,
}

impl OpenBundle {
    /// The bundle at `path` with this index and this signature.
    pub(crate) fn new(
        path: &Path,
        volumes: VolumeReader,
        index: Index,
        signature: Option<Vec<u8>>,
    ) -> OpenBundle {
        let entries = &index.contents.entries;
        let mut blobs: Vec<usize> = (0..entries.len()).filter(|place| entries[*place].is_blob()).collect();
        blobs.sort_by(|a, b| entries[*a].digest.cmp(&entries[*b].digest));
        OpenBundle { path: path.into(), volumes, index, signature, checks: RecentChecks::new(), blobs }
    }

    /// The entry at this place.
    pub(crate) fn entry(&self, place: usize) -> &TarEntry {
        &self.index.contents.entries[place]
    }

    /// The place of a blob among the entries.
    pub(crate) fn place(&self, digest: &Digest) -> Option<usize> {
        let entries = &self.index.contents.entries;
        let found = self.blobs.binary_search_by(|place| entries[*place].digest.cmp(digest));
        found.ok().map(|at| self.blobs[at])
    }
}

impl ReadAt for OpenBundle {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.volumes.read_exact_at(buffer, at)
    }
}
