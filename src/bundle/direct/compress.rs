//! What must be compressed in a direct bundle: entry after entry, each as soon as its content and those before it are
//! there. The spool's copy is removed once the entry is on disk.

use super::state::{Arrivals, DirectBundle, State};
use crate::bundle::error::Error;
use crate::bundle::format::buffers::Buffers;
use crate::bundle::format::entry::TarEntry;
use crate::bundle::format::frame::{self, MAX_FRAME};
use crate::bundle::format::hash::Frame;
use crate::bundle::pipeline;
use crate::bundle::plan::planned_entry::{ContentSource, PlannedEntry};
use crate::bundle::write::frames::{Encoded, encode, make_entry};
use crate::content::{ByteRange, ContentError};
use crate::model::{Digest, Hasher};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::PoisonError;

/// Pieces in flight: few, as transfers need memory at the same time.
const DEPTH: usize = 4;
/// How many bytes are written before they are synced to disk and the spool's copies go.
const FLUSH: u64 = 16 << 20;

impl DirectBundle {
    /// Writes the compressed entries, in their order, as their content arrives. Returns when all are written, or
    /// after [`DirectBundle::close`] when it gets no further.
    ///
    /// # Errors
    /// When content that arrived cannot be read, or the file cannot be written.
    pub(crate) fn compress(&self) -> Result<(), Error> {
        let state = &*self.0;
        let failed = |source| Error::Write { path: state.path.clone(), source };
        let (first, mut end) = {
            let written = state.compressed_entries();
            (state.compressed + written.frames.len(), written.end)
        };
        let (mut frames, mut batch, mut flushed) = (Vec::new(), Vec::new(), end);
        let buffers = Buffers::default();
        let result = pipeline::ordered_within(
            DEPTH,
            |hand| {
                for (index, entry) in state.plan.entries.iter().enumerate().skip(first) {
                    if !state.wait_for(entry) || !make_entry(index, entry, self, &buffers, hand)? {
                        break;
                    }
                }
                Ok(())
            },
            encode(state.options.level, &buffers),
            |done: Encoded| {
                let Some(entry) = done.entry.map(|index| &state.plan.entries[index]) else { return Ok(()) };
                let (frame, hash) = done.frame.map_err(failed)?;
                state.file.write_all_at(&frame, end).map_err(failed)?;
                end += frame.len() as u64;
                frames.push(Frame(frame.len() as u32, hash));
                buffers.give(frame);
                if frames.len() as u64 == TarEntry::frame_count(entry.descriptor.size) {
                    let mut written = state.compressed_entries();
                    batch.push((&entry.descriptor.digest, (written.end, end)));
                    written.frames.push(std::mem::take(&mut frames));
                    written.end = end;
                    drop(written);
                    if end - flushed >= FLUSH {
                        flushed = end;
                        state.unspool(&mut batch).map_err(failed)?;
                    }
                }
                Ok(())
            },
        );
        if let Err(Error::Content { source: ContentError::Damaged { digest }, .. }) = &result {
            state.distrust(digest);
        }
        result.and(state.unspool(&mut batch).map_err(failed))
    }
}

impl State {
    /// Waits until the content of an entry has arrived. Returns `false` when nothing more arrives.
    fn wait_for(&self, entry: &PlannedEntry) -> bool {
        let Some(wanted) = needed(entry) else { return true };
        let arrivals = self.arrivals.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut Arrivals| !state.closed && !state.here.contains(wanted);
        let arrivals = self.arrivals.1.wait_while(arrivals, waiting).unwrap_or_else(PoisonError::into_inner);
        arrivals.here.contains(wanted)
    }

    /// Syncs the written entries to disk, records them, and removes the spool's copies, but those that a
    /// trimmed index is still made from.
    fn unspool(&self, batch: &mut Vec<(&Digest, ByteRange)>) -> io::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.file.sync_data()?;
        for (digest, range) in batch.drain(..) {
            self.journal.packed(digest, range)?;
            if !self.untrimmed.contains_key(digest) {
                // what cannot be removed now goes with the whole spool
                let _ = fs::remove_file(self.spool.path(digest));
            }
        }
        Ok(())
    }

    /// Recovers the compressed entries of an earlier run, as far as they are sound and follow one another.
    pub(super) fn recover(&self) {
        let mut written = self.compressed_entries();
        for entry in &self.contents.entries[self.compressed..] {
            let place = self.journal.packed_at(&entry.digest).filter(|place| place.0 == written.end);
            let Some((place, frames)) = place.and_then(|at| Some((at, packed(&self.file, entry, at)?)))
            else {
                break;
            };
            written.end = place.1;
            written.frames.push(frames);
        }
    }
}

/// The blob that must be there before the piece can be written; `None` where it follows from the plan.
fn needed(entry: &PlannedEntry) -> Option<&Digest> {
    match &entry.content {
        ContentSource::Bytes(_) => None,
        ContentSource::Store => Some(&entry.descriptor.digest),
        ContentSource::Trimmed { of, .. } => Some(&of.digest),
    }
}

/// The frames of a compressed entry that lies at these offsets of the file, if it is sound.
fn packed(file: &File, entry: &TarEntry, (from, to): ByteRange) -> Option<Vec<Frame>> {
    let (mut at, mut frames) = (from, Vec::new());
    let mut hasher = Hasher::new(entry.digest.algorithm());
    for index in 0..TarEntry::frame_count(entry.size) as usize {
        let mut bytes = vec![0; to.checked_sub(at)?.min(MAX_FRAME as u64) as usize];
        file.read_exact_at(&mut bytes, at).ok()?;
        let (frame, _) = frame::split(&bytes)?;
        let content = frame::decode(entry.form_of(index), frame, entry.content_len(index)).ok()?;
        let content = entry.check_content(index, content).ok()?;
        if entry.is_content(index) {
            hasher.update(&content);
        }
        frames.push(Frame::of(frame));
        at += frame.len() as u64;
    }
    (at == to && hasher.finish() == entry.digest).then_some(frames)
}
