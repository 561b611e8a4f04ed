//! What is known of an opened bundle: its index in memory, and where its bytes are.

use super::frame_rows::FrameRows;
use super::index::Index;
use super::volume_reader::VolumeReader;
use crate::format::damage::Damage;
use crate::format::entry::{EntryFrame, TarEntry};
use crate::format::names::ItemName;
use crate::format::stored::ReadAt;
use landfall_content::RecentChecks;
use landfall_model::Digest;
use std::io;
use std::path::PathBuf;

/// An opened bundle, as all its readers share it.
#[derive(Debug)]
pub struct OpenBundle {
    pub path: PathBuf,
    /// What the user named: the path, and more places of its volumes.
    pub places: Vec<PathBuf>,
    pub volumes: VolumeReader,
    pub index: Index,
    pub rows: FrameRows,
    /// Of frames that were checked before, by the places of their entries.
    pub(super) checks: RecentChecks<usize>,
    /// Items that the bundle says of itself that it lacks, and those that were in a volume which is
    /// lost.
    pub partial: Vec<ItemName>,
    /// The places of all blobs, by digest.
    blobs: Vec<usize>,
}

/// How the content of a frame is checked.
pub(crate) type FrameContent = fn(&TarEntry, &EntryFrame, &[u8]) -> Result<Vec<u8>, String>;

impl OpenBundle {
    /// The bundle at `places` with this index.
    pub fn new(places: &[PathBuf], volumes: VolumeReader, index: Index) -> OpenBundle {
        let entries = &index.contents.entries;
        let mut blobs: Vec<usize> = (0..entries.len())
            .filter(|place| entries[*place].is_blob())
            .collect();
        blobs.sort_by(|a, b| entries[*a].digest.cmp(&entries[*b].digest));
        let rows = FrameRows::new(index.contents.frames.clone());
        let partial = index.contents.partial.clone();
        let (path, places) = (places.first().cloned().unwrap_or_default(), places.to_vec());
        OpenBundle {
            path,
            places,
            volumes,
            index,
            rows,
            checks: RecentChecks::default(),
            partial,
            blobs,
        }
    }

    /// The entry at this place.
    pub fn entry(&self, place: usize) -> &TarEntry {
        &self.index.contents.entries[place]
    }

    /// A frame of the entry at this place.
    ///
    /// # Errors
    /// When the frame table is damaged, or cannot be right.
    pub fn frame(&self, place: usize, index: usize) -> Result<EntryFrame, Damage> {
        let entry = self.entry(place);
        let number = entry.frame + index as u64;
        let (from, hash) = self.rows.row(&self.volumes, number)?;
        let to = match index as u64 + 1 < TarEntry::frame_count(entry.size) {
            true => self.rows.row(&self.volumes, number + 1)?.0,
            false => entry.end(),
        };
        entry
            .frame(index, from, to, hash)
            .map_err(|why| Damage::new(&entry.name, entry.offset, why))
    }

    /// The content of such a frame, of which these bytes were read, as `content` checks it.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn content(
        &self,
        place: usize,
        frame: &EntryFrame,
        bytes: io::Result<Vec<u8>>,
        content: FrameContent,
    ) -> Result<Vec<u8>, Damage> {
        let entry = self.entry(place);
        let bytes = bytes.map_err(|error| Damage::unread(&entry.name, frame.offset, &error))?;
        content(entry, frame, &bytes).map_err(|why| Damage::new(&entry.name, frame.offset, why))
    }

    /// The place of a blob among the entries.
    pub fn place(&self, digest: &Digest) -> Option<usize> {
        let entries = &self.index.contents.entries;
        let found = self
            .blobs
            .binary_search_by(|place| entries[*place].digest.cmp(digest));
        found.ok().map(|at| self.blobs[at])
    }
}

impl ReadAt for OpenBundle {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.volumes.read_exact_at(buffer, at)
    }
}
