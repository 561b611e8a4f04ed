//! Reads one entry of a bundle frame by frame. Each frame is verified before any byte of it is
//! returned.

use super::open_bundle::{FrameContent, OpenBundle};
use super::sequential_reader::SequentialReader;
use crate::format::damage::Damage;
use crate::format::entry::TarEntry;
use crate::format::stored::CHUNK;
use landfall_model::Hasher;
use std::io::{self, Read};
use std::sync::Arc;

/// Reads the content of an entry frame by frame.
pub(super) struct BundleEntryReader {
    bundle: Arc<OpenBundle>,
    source: SequentialReader,
    entry_index: usize,
    /// The number of the next frame.
    next: usize,
    /// The bytes to skip at the beginning of that frame's content.
    skip: usize,
    piece: io::Cursor<Vec<u8>>,
    /// Set if the whole entry is read and its digest was not verified before.
    hasher: Option<Hasher>,
    /// Verifies and decodes a frame.
    content: FrameContent,
}

impl BundleEntryReader {
    /// Reads the entry with this index, starting at this offset of its content.
    pub(super) fn new(
        bundle: Arc<OpenBundle>,
        entry_index: usize,
        offset: u64,
    ) -> BundleEntryReader {
        let entry = bundle.entry(entry_index);
        let offset = offset.min(entry.size);
        let next = 1 + (offset / CHUNK as u64) as usize;
        BundleEntryReader {
            entry_index,
            next,
            skip: (offset % CHUNK as u64) as usize,
            piece: io::Cursor::default(),
            // the digest is over the whole blob, so a read from the middle is verified only by the
            // hashes of the frames
            hasher: (offset == 0).then(|| Hasher::new(entry.digest.algorithm())),
            content: TarEntry::content,
            source: SequentialReader::new(Arc::clone(&bundle), entry.end()),
            bundle,
        }
    }

    /// Like `new`, for an entry whose digest was already verified: compares only each frame's
    /// checksum.
    pub(super) fn of_known(
        bundle: Arc<OpenBundle>,
        entry_index: usize,
        offset: u64,
    ) -> BundleEntryReader {
        let reader = BundleEntryReader::new(bundle, entry_index, offset);
        BundleEntryReader {
            hasher: None,
            content: TarEntry::decoded,
            ..reader
        }
    }

    fn load(&mut self) -> io::Result<()> {
        let entry = self.bundle.entry(self.entry_index);
        let volumes = &self.bundle.volumes;
        let damaged = |damage: Damage| {
            // a read error of an object store may be temporary and does not mean damage
            let kind = if damage.is_unread && volumes.is_remote() {
                io::ErrorKind::Other
            } else {
                io::ErrorKind::InvalidData
            };
            io::Error::new(kind, volumes.locate(damage).to_string())
        };
        if entry.is_content(self.next) {
            let frame = self
                .bundle
                .frame(self.entry_index, self.next)
                .map_err(damaged)?;
            let bytes = self.source.bytes_at(frame.offset, frame.length);
            let content = self
                .bundle
                .content(self.entry_index, &frame, bytes, self.content);
            let content = content.map_err(damaged)?;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&content);
            }
            self.piece = io::Cursor::new(content);
            self.piece
                // only the first frame is read from its middle
                .set_position(std::mem::take(&mut self.skip) as u64);
            self.next += 1;
        }
        if !entry.is_content(self.next)
            && self
                .hasher
                .take()
                .is_some_and(|hasher| hasher.finish() != entry.digest)
        {
            // the last piece is dropped, so that no receiver gets a complete blob with wrong bytes
            self.piece = io::Cursor::default();
            let why = format!("its content does not have the digest {}", entry.digest);
            return Err(damaged(Damage::new(&entry.name, entry.offset, why)));
        }
        Ok(())
    }
}

impl Read for BundleEntryReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.position() == self.piece.get_ref().len() as u64 && !buffer.is_empty() {
            self.load()?;
        }
        self.piece.read(buffer)
    }
}
