//! Writes a stored blob into a direct bundle. Its bytes are written to their final offsets in any
//! order; a frame is closed when all bytes up to its end are written.

use super::direct_bundle::DirectState;
use crate::format::hash::FrameRecord;
use crate::format::stored::runs;
use crate::format::stream::FrameStream;
use landfall_content::{ByteRange, PartialBlob, WriteError};
use landfall_model::{Descriptor, locked};
use std::fmt;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard};

/// Writes the frames of one stored blob into the file of an unfinished bundle.
pub(super) struct StoredBlobWriter {
    bundle: Arc<DirectState>,
    descriptor: Descriptor,
    /// The file offset of the first frame.
    start: u64,
    state: Mutex<FrameProgress>,
}

struct FrameProgress {
    stream: FrameStream,
    frames: Vec<FrameRecord>,
    /// Whether the blob is complete.
    kept: bool,
}

impl FrameProgress {
    fn new(size: u64) -> FrameProgress {
        FrameProgress {
            stream: FrameStream::new(size),
            frames: Vec::new(),
            kept: false,
        }
    }
}

impl StoredBlobWriter {
    pub(super) fn new(
        bundle: Arc<DirectState>,
        descriptor: &Descriptor,
        start: u64,
    ) -> StoredBlobWriter {
        let state = Mutex::new(FrameProgress::new(descriptor.size));
        StoredBlobWriter {
            bundle,
            descriptor: descriptor.clone(),
            start,
            state,
        }
    }

    fn state(&self) -> MutexGuard<'_, FrameProgress> {
        locked(&self.state)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> WriteError {
        let path = self.bundle.path.clone();
        move |source| WriteError::io("write", &path, source)
    }
}

impl fmt::Debug for StoredBlobWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "StoredBlobWriter({} at {})",
            self.descriptor.digest, self.start
        )
    }
}

impl PartialBlob for StoredBlobWriter {
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), WriteError> {
        for (offset, run) in runs(at, buffer.len()) {
            let piece = &mut buffer[run];
            self.bundle
                .file
                .read_exact_at(piece, self.start + offset)
                .map_err(self.failed())?;
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WriteError> {
        for (offset, run) in runs(at, bytes.len()) {
            self.bundle
                .file
                .write_all_at(&bytes[run], self.start + offset)
                .map_err(self.failed())?;
        }
        Ok(())
    }

    fn hashed(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let mut state = self.state();
        // the content is in the file already; the stream computes the bytes around it
        let closed = state.stream.push(bytes);
        for frame in &closed {
            for (at, around) in &frame.around {
                self.bundle
                    .file
                    .write_all_at(around, self.start + at)
                    .map_err(self.failed())?;
            }
        }
        state
            .frames
            .extend(closed.iter().map(|closed| closed.frame));
        // once per frame rather than per piece, since each record costs a write
        if !closed.is_empty() {
            self.record((0, state.stream.at())).map_err(self.failed())?;
        }
        Ok(())
    }

    fn record(&self, range: ByteRange) -> io::Result<()> {
        self.bundle
            .journal
            .record_range(&self.descriptor.digest, range)
    }

    fn clear(&self) -> Result<(), WriteError> {
        // the bytes remain in the file and are overwritten; only their records are removed
        *self.state() = FrameProgress::new(self.descriptor.size);
        self.bundle
            .journal
            .record_lost(&self.descriptor.digest)
            .map_err(self.failed())
    }

    fn publish(&self) -> Result<(), WriteError> {
        let Descriptor { digest, size, .. } = &self.descriptor;
        let mut state = self.state();
        // set first: after an error the drop must not record a part of a complete blob
        state.kept = true;
        self.bundle
            .arrived(digest, std::mem::take(&mut state.frames));
        self.bundle
            .journal
            .record_whole(digest, self.start, *size)
            .map_err(self.failed())
    }
}

impl Drop for StoredBlobWriter {
    /// Records the bytes since the last frame, so that a resumed run finds them, too.
    fn drop(&mut self) {
        let state = self.state();
        let at = state.stream.at();
        if !state.kept && at > 0 {
            // bytes without a record are downloaded again
            let _ = self.record((0, at));
        }
    }
}
