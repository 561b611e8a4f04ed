//! Writes the compressed entries of a direct bundle in order, each as soon as its content has
//! arrived and the entries before it are written. The spool's copy is removed once the entry is on
//! disk.

use super::{DirectBundle, DirectState};
use crate::error::BundleError;
use crate::format::entry::TarEntry;
use crate::format::frame::{self, FrameRecord, MAX_FRAME};
use crate::write::entry_writer::EntryWriter;
use crate::write::volume_writer::VolumeWriter;
use landfall_content::{BlobRead, ByteRange, ContentError};
use landfall_model::report::SilentProgress;
use landfall_model::{Digest, Hasher, locked, unpoisoned};
use landfall_os::FileExt;
use std::fs::{self, File};
use std::io::{self, Read};

/// The number of frames in flight: few, since transfers need memory at the same time.
const DEPTH: usize = 4;
/// The number of bytes that are written before they are synced to disk and the spool's copies are
/// removed.
const FLUSH: u64 = 16 << 20;

impl DirectBundle {
    /// Writes the compressed entries in order as their content arrives. Returns when all are
    /// written, or when content is missing after [`DirectBundle::close`].
    ///
    /// # Errors
    /// If content that arrived cannot be read, or the file cannot be written.
    pub fn compress(&self) -> Result<(), BundleError> {
        let state = &*self.0;
        let (first, end) = {
            let written = locked(&state.compressed_entries);
            (state.compressed + written.frames.len(), written.end)
        };
        let mut batch = Vec::new();
        let mut flushed = end;
        let mut out = VolumeWriter::file(state.file.clone(), end, None);
        let entries = EntryWriter {
            plan: &state.plan,
            blobs: &Arriving(self),
            level: state.options.level,
            depth: DEPTH,
            path: &state.path,
            progress: &SilentProgress,
        };
        let result = entries.append(
            first..state.plan.entries.len(),
            &mut out,
            |entry_index, offset, frames| {
                let end = offset + frames.iter().map(|frame| u64::from(frame.0)).sum::<u64>();
                let mut written = locked(&state.compressed_entries);
                batch.push((
                    &state.plan.entries[entry_index].descriptor.digest,
                    (offset, end),
                ));
                written.frames.push(frames);
                written.end = end;
                drop(written);
                // syncing after each entry would be slow; syncing only at the end would keep the
                // whole spool
                if end - flushed >= FLUSH {
                    flushed = end;
                    state.unspool(&mut batch)?;
                }
                Ok(())
            },
        );
        let result = match result {
            // no more content arrives; the pull reports missing content
            Err(BundleError::Content {
                source: ContentError::Missing { .. },
                ..
            }) => Ok(()),
            Err(BundleError::Content {
                source: ContentError::Damaged { digest },
                item,
            }) => {
                // the store removes its damaged copy, so that the next run downloads the blob again
                state.distrust(&digest);
                Err(BundleError::Content {
                    source: ContentError::Damaged { digest },
                    item,
                })
            }
            other => other,
        };
        result.and(
            state
                .unspool(&mut batch)
                .map_err(BundleError::write(&state.path)),
        )
    }
}

/// Reads the content of a direct bundle, waiting for each blob to arrive. A blob that has not
/// arrived when the arrivals are closed is missing.
struct Arriving<'a>(&'a DirectBundle);

impl BlobRead for Arriving<'_> {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        self.0.stat(digest)
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let state = &(self.0).0;
        let arrivals = unpoisoned(
            state
                .arrived
                .wait_while(locked(&state.arrivals), |arrivals| {
                    !arrivals.is_closed && !arrivals.blobs.contains(digest)
                }),
        );
        if !arrivals.blobs.contains(digest) {
            return Err(ContentError::missing(digest));
        }
        drop(arrivals);
        self.0.open(digest, offset)
    }
}

impl DirectState {
    /// Syncs the written entries to disk, records them, and removes the spool's copies. Copies of
    /// indexes stay if trimmed indexes are computed from them.
    fn unspool(&self, batch: &mut Vec<(&Digest, ByteRange)>) -> io::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        // in this order: sync the bytes, write the journal, remove the copy; so a crash loses no
        // content
        self.file.sync_data()?;
        for (digest, range) in batch.drain(..) {
            self.journal.record_packed(digest, range)?;
            if !self.untrimmed.contains_key(digest) {
                // a copy that cannot be removed now is removed with the whole spool
                let _ = fs::remove_file(self.spool.path(digest));
            }
        }
        Ok(())
    }

    /// Recovers the compressed entries of an earlier run, up to the first one that is missing or
    /// damaged.
    pub(super) fn recover(&self) {
        let mut written = locked(&self.compressed_entries);
        for entry in &self.contents.entries[self.compressed..] {
            let range = self
                .journal
                .packed_at(&entry.digest)
                // entries follow each other without gaps, so the first one that is missing ends the
                // recovery
                .filter(|range| range.0 == written.end);
            let Some((range, frames)) =
                range.and_then(|at| Some((at, packed(&self.file, entry, at)?)))
            else {
                break;
            };
            written.end = range.1;
            written.frames.push(frames);
        }
    }
}

/// The frames of the compressed entry at these offsets of the file, if it is intact.
fn packed(file: &File, entry: &TarEntry, (from, to): ByteRange) -> Option<Vec<FrameRecord>> {
    let mut at = from;
    let mut frames = Vec::new();
    let mut hasher = Hasher::new(entry.digest.algorithm());
    for index in 0..TarEntry::frame_count(entry.size) as usize {
        // the journal may be damaged, so nothing larger than a frame is allocated
        let mut bytes = vec![0; to.checked_sub(at)?.min(MAX_FRAME as u64) as usize];
        file.read_exact_at(&mut bytes, at).ok()?;
        let (frame, _) = frame::split(&bytes)?;
        let content = frame::decode(entry.form_of(index), frame, entry.content_len(index)).ok()?;
        let content = entry.check_content(index, content).ok()?;
        if entry.is_content(index) {
            hasher.update(&content);
        }
        frames.push(FrameRecord::of(frame));
        at += frame.len() as u64;
    }
    (at == to && hasher.finish() == entry.digest).then_some(frames)
}
