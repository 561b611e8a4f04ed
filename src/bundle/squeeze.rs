//! What must be compressed, in a bundle that is made straight from upstream: entry after entry, each as soon
//! as its content and those before it are there. The spool's copy goes when the entry is on disk.

use super::contents::{Frame, Record};
use super::pipeline::Buffers;
use super::plan::{Content, Piece};
use super::straight::{Inner, Straight};
use super::verify::check_frame;
use super::write::{Done, encode, make_piece};
use super::{Error, frame, pipeline};
use crate::content::{ByteRange, ContentError};
use crate::model::{Digest, Hasher};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::PoisonError;

/// Pieces in flight: few, as transfers need memory at the same time.
const DEPTH: usize = 4;
/// How many bytes are written before they are brought to disk and the spool's copies go.
const FLUSH: u64 = 16 << 20;

/// The compressed entries that are written.
#[derive(Debug)]
pub(super) struct Squeezed {
    /// The frames of each, header and padding included.
    pub frames: Vec<Vec<Frame>>,
    /// Where the next one begins.
    pub end: u64,
}

impl Straight {
    /// Writes the compressed entries, in their order, as their content comes. Comes back when all are written, or
    /// after [`Straight::close`] when it gets no further.
    ///
    /// # Errors
    /// When content that came cannot be read, or the file cannot be written.
    pub fn squeeze(&self) -> Result<(), Error> {
        let inner = &*self.0;
        let failed = |source| Error::Write { path: inner.path.clone(), source };
        let (first, mut end) = {
            let squeezed = inner.squeezed();
            (inner.compressed + squeezed.frames.len(), squeezed.end)
        };
        let (mut frames, mut batch, mut flushed) = (Vec::new(), Vec::new(), end);
        let buffers = Buffers::default();
        let squeezed = pipeline::ordered_within(
            DEPTH,
            |hand| {
                for (index, piece) in inner.plan.pieces.iter().enumerate().skip(first) {
                    if !inner.wait_for(piece) || !make_piece(index, piece, self, &buffers, hand)? {
                        break;
                    }
                }
                Ok(())
            },
            encode(inner.options.level, &buffers),
            |done: Done| {
                let Some(piece) = done.piece.map(|index| &inner.plan.pieces[index]) else { return Ok(()) };
                let (frame, hash) = done.frame.map_err(failed)?;
                inner.file.write_all_at(&frame, end).map_err(failed)?;
                end += frame.len() as u64;
                frames.push(Frame(frame.len() as u32, hash));
                buffers.give(frame);
                if frames.len() as u64 == Record::frame_count(piece.descriptor.size) {
                    let mut squeezed = inner.squeezed();
                    batch.push((&piece.descriptor.digest, (squeezed.end, end)));
                    squeezed.frames.push(std::mem::take(&mut frames));
                    squeezed.end = end;
                    drop(squeezed);
                    if end - flushed >= FLUSH {
                        flushed = end;
                        inner.unspool(&mut batch).map_err(failed)?;
                    }
                }
                Ok(())
            },
        );
        if let Err(Error::Content { source: ContentError::Damaged { digest }, .. }) = &squeezed {
            inner.distrust(digest);
        }
        squeezed.and(inner.unspool(&mut batch).map_err(failed))
    }
}

impl Inner {
    /// Waits until the content of a piece has come; `false` when nothing more comes.
    fn wait_for(&self, piece: &Piece) -> bool {
        let Some(wanted) = needed(piece) else { return true };
        let arrivals = self.arrivals.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut super::straight::Arrivals| !state.closed && !state.here.contains(wanted);
        let arrivals = self.arrivals.1.wait_while(arrivals, waiting).unwrap_or_else(PoisonError::into_inner);
        arrivals.here.contains(wanted)
    }

    /// Brings the written entries to disk, records them, and removes the spool's copies, but those that a
    /// trimmed index is still made from.
    fn unspool(&self, batch: &mut Vec<(&Digest, ByteRange)>) -> io::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.file.sync_data()?;
        for (digest, island) in batch.drain(..) {
            self.journal.packed(digest, island)?;
            if !self.untrimmed.contains_key(digest) {
                // what cannot be removed now goes with the whole spool
                let _ = fs::remove_file(self.spool.path(digest));
            }
        }
        Ok(())
    }

    /// Takes in the compressed entries of an earlier run, as far as they are sound and follow one another.
    pub(super) fn recover(&self) {
        let mut squeezed = self.squeezed();
        for entry in &self.contents.entries[self.compressed..] {
            let place = self.journal.packed_at(&entry.digest).filter(|place| place.0 == squeezed.end);
            let Some((place, frames)) = place.and_then(|at| Some((at, packed(&self.file, entry, at)?)))
            else {
                break;
            };
            squeezed.end = place.1;
            squeezed.frames.push(frames);
        }
    }
}

/// The blob that must be there before the piece can be written; `None` where it follows from the plan.
fn needed(piece: &Piece) -> Option<&Digest> {
    match &piece.content {
        Content::Bytes(_) => None,
        Content::Store => Some(&piece.descriptor.digest),
        Content::Trimmed { of, .. } => Some(&of.digest),
    }
}

/// The frames of a compressed entry that lies at these offsets of the file, if it is sound.
fn packed(file: &File, entry: &Record, (from, to): ByteRange) -> Option<Vec<Frame>> {
    let (mut at, mut frames) = (from, Vec::new());
    let mut hasher = Hasher::new(entry.digest.algorithm());
    for index in 0..Record::frame_count(entry.size) as usize {
        let mut bytes = vec![0; to.checked_sub(at)?.min(frame::MAX_FRAME as u64) as usize];
        file.read_exact_at(&mut bytes, at).ok()?;
        let (frame, _) = frame::split(&bytes)?;
        let content = frame::decode(entry.form_of(index), frame, entry.content_len(index)).ok()?;
        let content = check_frame(entry, index, content).ok()?;
        if entry.is_content(index) {
            hasher.update(&content);
        }
        frames.push(Frame::of(frame));
        at += frame.len() as u64;
    }
    (at == to && hasher.finish() == entry.digest).then_some(frames)
}
