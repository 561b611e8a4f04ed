//! Reading the whole of a stored entry straight from its raw blocks, for a receiver that takes nothing
//! before the end: one digest over all in place of a hash for each frame and a copy of it.

use super::read::Inner;
use super::{Fault, frame};
use crate::model::Hasher;
use std::io::{self, Read};
use std::sync::Arc;

/// Reads a stored entry from its beginning. The last bytes are not handed out if its digest is wrong.
pub(super) struct WholeReader {
    bundle: Arc<Inner>,
    place: usize,
    /// Where the frames of the content begin.
    start: u64,
    /// Content bytes handed out.
    done: u64,
    hasher: Option<Hasher>,
}

impl WholeReader {
    pub(super) fn new(bundle: Arc<Inner>, place: usize) -> WholeReader {
        let entry = &bundle.contents.entries[place];
        let start = entry.offset + u64::from(entry.frames[0].0);
        let hasher = Some(Hasher::new(entry.digest.algorithm()));
        WholeReader { bundle, place, start, done: 0, hasher }
    }

    fn check(&mut self) -> io::Result<()> {
        let entry = &self.bundle.contents.entries[self.place];
        if self.done == entry.size && self.hasher.take().is_some_and(|hasher| hasher.finish() != entry.digest)
        {
            let why = format!("its content does not have the digest {}", entry.digest);
            let fault = self.bundle.medium.place(Fault::new(&entry.name, entry.offset, why));
            return Err(io::Error::new(io::ErrorKind::InvalidData, fault.to_string()));
        }
        Ok(())
    }
}

impl Read for WholeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.bundle.contents.entries[self.place].size - self.done;
        let (at, run) = frame::stored_place(self.done);
        let count = rest.min(run as u64).min(buffer.len() as u64) as usize;
        if count > 0 {
            let piece = &mut buffer[..count];
            self.bundle.medium.read_exact_at(piece, self.start + at)?;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(piece);
            }
            self.done += count as u64;
        }
        self.check()?;
        Ok(count)
    }
}
