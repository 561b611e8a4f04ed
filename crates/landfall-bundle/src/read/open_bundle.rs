//! The shared state of an open bundle: its index in memory, and the location of its bytes.

use super::frame_rows::FrameRows;
use super::index::BundleIndex;
use super::volume_reader::VolumeReader;
use crate::format::damage::Damage;
use crate::format::entry::{EntryFrame, TarEntry};
use crate::format::names::ItemName;
use crate::format::stored::ReadAt;
use landfall_content::RecentChecks;
use landfall_model::Digest;
use std::io;
use std::path::PathBuf;

/// The state of an open bundle that all its readers share.
#[derive(Debug)]
pub struct OpenBundle {
    pub path: PathBuf,
    /// The paths that the user named: that of the bundle, then further volumes or folders.
    pub locations: Vec<PathBuf>,
    pub volumes: VolumeReader,
    pub index: BundleIndex,
    pub rows: FrameRows,
    /// Frames whose checksums were compared a moment ago, by the index of their entry.
    pub(super) checks: RecentChecks<usize>,
    /// The items that the index lists as missing, and those whose content was in a lost volume.
    pub partial: Vec<ItemName>,
    /// The entry indexes of all blobs, sorted by digest for binary search.
    blobs: Vec<usize>,
}

/// A function that verifies and decodes a frame.
pub(crate) type FrameContent = fn(&TarEntry, &EntryFrame, &[u8]) -> Result<Vec<u8>, String>;

impl OpenBundle {
    /// An open bundle with this index.
    pub fn new(locations: &[PathBuf], volumes: VolumeReader, index: BundleIndex) -> OpenBundle {
        let entries = &index.contents.entries;
        // indexes in place of a map of digests, which would need several times the memory
        let mut blobs: Vec<usize> = (0..entries.len())
            .filter(|entry_index| entries[*entry_index].is_blob())
            .collect();
        blobs.sort_by(|a, b| entries[*a].digest.cmp(&entries[*b].digest));
        let rows = FrameRows::new(index.contents.frames.clone());
        let partial = index.contents.partial.clone();
        let path = locations.first().cloned().unwrap_or_default();
        let locations = locations.to_vec();
        OpenBundle {
            path,
            locations,
            volumes,
            index,
            rows,
            checks: RecentChecks::default(),
            partial,
            blobs,
        }
    }

    /// The entry with this index.
    pub fn entry(&self, entry_index: usize) -> &TarEntry {
        &self.index.contents.entries[entry_index]
    }

    /// The frame at `index` of an entry. Fails if the frame table is damaged or inconsistent.
    pub fn frame(&self, entry_index: usize, index: usize) -> Result<EntryFrame, Damage> {
        let entry = self.entry(entry_index);
        let number = entry.frame + index as u64;
        let (from, hash) = self.rows.row(&self.volumes, number)?;
        let to = if index as u64 + 1 < TarEntry::frame_count(entry.size) {
            self.rows.row(&self.volumes, number + 1)?.0
        } else {
            // the last frame has no row after it
            entry.end()
        };
        entry
            .frame(index, from, to, hash)
            .map_err(|why| Damage::new(&entry.name, entry.offset, why))
    }

    /// Verifies and decodes a frame from the bytes that were read for it.
    pub(super) fn content(
        &self,
        entry_index: usize,
        frame: &EntryFrame,
        bytes: io::Result<Vec<u8>>,
        content: FrameContent,
    ) -> Result<Vec<u8>, Damage> {
        let entry = self.entry(entry_index);
        let bytes = bytes.map_err(|error| Damage::unread(&entry.name, frame.offset, &error))?;
        content(entry, frame, &bytes).map_err(|why| Damage::new(&entry.name, frame.offset, why))
    }

    /// The index of a blob's entry.
    pub fn entry_index(&self, digest: &Digest) -> Option<usize> {
        let entries = &self.index.contents.entries;
        let found = self
            .blobs
            .binary_search_by(|entry_index| entries[*entry_index].digest.cmp(digest));
        found.ok().map(|at| self.blobs[at])
    }
}

impl ReadAt for OpenBundle {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.volumes.read_exact_at(buffer, at)
    }
}
