//! Reading one entry of a bundle frame by frame. Each frame is checked before a byte of it is
//! handed out.

use super::open_bundle::{FrameContent, OpenBundle};
use super::stretch::Stretch;
use crate::format::damage::Damage;
use crate::format::entry::TarEntry;
use crate::format::stored::CHUNK;
use landfall_model::Hasher;
use std::io::{self, Read};
use std::sync::Arc;

/// Reads one entry frame by frame.
pub(super) struct EntryReader {
    bundle: Arc<OpenBundle>,
    stretch: Stretch,
    place: usize,
    /// The next frame to read.
    next: usize,
    /// Bytes of that frame's content to leave out.
    skip: usize,
    piece: io::Cursor<Vec<u8>>,
    /// Where the whole entry is read, and its digest is not known to be right.
    hasher: Option<Hasher>,
    /// The content of a frame, checked.
    content: FrameContent,
}

impl EntryReader {
    /// Reads the entry at `place` from `offset` of its content on.
    pub(super) fn new(bundle: Arc<OpenBundle>, place: usize, offset: u64) -> EntryReader {
        let entry = bundle.entry(place);
        let offset = offset.min(entry.size);
        let next = 1 + (offset / CHUNK as u64) as usize;
        EntryReader {
            place,
            next,
            skip: (offset % CHUNK as u64) as usize,
            piece: io::Cursor::default(),
            hasher: (offset == 0).then(|| Hasher::new(entry.digest.algorithm())),
            content: TarEntry::content,
            stretch: Stretch::new(Arc::clone(&bundle), entry.end()),
            bundle,
        }
    }

    /// The same of an entry that has its digest: of a frame, only the checksum is compared.
    pub(super) fn of_known(bundle: Arc<OpenBundle>, place: usize, offset: u64) -> EntryReader {
        let reader = EntryReader::new(bundle, place, offset);
        EntryReader {
            hasher: None,
            content: TarEntry::decoded,
            ..reader
        }
    }

    fn load(&mut self) -> io::Result<()> {
        let entry = self.bundle.entry(self.place);
        let volumes = &self.bundle.volumes;
        let damaged = |damage: Damage| {
            // what an object store does not give now is not damaged
            let kind = match damage.is_unread && volumes.is_remote() {
                true => io::ErrorKind::Other,
                false => io::ErrorKind::InvalidData,
            };
            io::Error::new(kind, volumes.place(damage).to_string())
        };
        if entry.is_content(self.next) {
            let frame = self.bundle.frame(self.place, self.next).map_err(damaged)?;
            let bytes = self.stretch.bytes_at(frame.offset, frame.length);
            let content = self.bundle.content(self.place, &frame, bytes, self.content);
            let content = content.map_err(damaged)?;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&content);
            }
            self.piece = io::Cursor::new(content);
            self.piece
                .set_position(std::mem::take(&mut self.skip) as u64);
            self.next += 1;
        }
        if !entry.is_content(self.next)
            && self
                .hasher
                .take()
                .is_some_and(|hasher| hasher.finish() != entry.digest)
        {
            self.piece = io::Cursor::default();
            let why = format!("its content does not have the digest {}", entry.digest);
            return Err(damaged(Damage::new(&entry.name, entry.offset, why)));
        }
        Ok(())
    }
}

impl Read for EntryReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.position() == self.piece.get_ref().len() as u64 && !buffer.is_empty() {
            self.load()?;
        }
        self.piece.read(buffer)
    }
}
