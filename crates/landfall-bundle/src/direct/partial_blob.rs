//! A stored blob on its way into a direct bundle. Its bytes go to their final places in any order;
//! a frame is closed when all bytes up to its end are there.

use super::state::State as Bundle;
use crate::format::hash::Frame;
use crate::format::stored::runs;
use crate::format::stream::FrameStream;
use landfall_content::{ByteRange, PartialBlob, WriteError};
use landfall_model::Descriptor;
use std::fmt;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The frames of one stored blob in the file of a bundle that is being made.
pub(super) struct StoredPartialBlob {
    bundle: Arc<Bundle>,
    descriptor: Descriptor,
    /// File offset of its first frame.
    start: u64,
    state: Mutex<State>,
}

struct State {
    stream: FrameStream,
    frames: Vec<Frame>,
    /// Whether the blob is complete, so that nothing more is recorded.
    kept: bool,
}

impl State {
    fn new(size: u64) -> State {
        State {
            stream: FrameStream::new(size),
            frames: Vec::new(),
            kept: false,
        }
    }
}

impl StoredPartialBlob {
    pub(super) fn new(
        bundle: Arc<Bundle>,
        descriptor: &Descriptor,
        start: u64,
    ) -> StoredPartialBlob {
        let state = Mutex::new(State::new(descriptor.size));
        StoredPartialBlob {
            bundle,
            descriptor: descriptor.clone(),
            start,
            state,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> WriteError {
        let path = self.bundle.path.clone();
        move |source| WriteError::io("write", &path, source)
    }
}

impl fmt::Debug for StoredPartialBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "StoredPartialBlob({} at {})",
            self.descriptor.digest, self.start
        )
    }
}

impl PartialBlob for StoredPartialBlob {
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), WriteError> {
        for (place, run) in runs(at, buffer.len()) {
            let piece = &mut buffer[run];
            self.bundle
                .file
                .read_exact_at(piece, self.start + place)
                .map_err(self.failed())?;
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WriteError> {
        for (place, run) in runs(at, bytes.len()) {
            self.bundle
                .file
                .write_all_at(&bytes[run], self.start + place)
                .map_err(self.failed())?;
        }
        Ok(())
    }

    fn hashed(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let mut state = self.state();
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
        if !closed.is_empty() {
            self.record((0, state.stream.at())).map_err(self.failed())?;
        }
        Ok(())
    }

    fn record(&self, island: ByteRange) -> io::Result<()> {
        self.bundle.journal.has(&self.descriptor.digest, island)
    }

    fn clear(&self) -> Result<(), WriteError> {
        *self.state() = State::new(self.descriptor.size);
        self.bundle
            .journal
            .lost(&self.descriptor.digest)
            .map_err(self.failed())
    }

    fn publish(&self) -> Result<(), WriteError> {
        let Descriptor { digest, size, .. } = &self.descriptor;
        let mut state = self.state();
        state.kept = true;
        self.bundle
            .arrived(digest, std::mem::take(&mut state.frames));
        self.bundle
            .journal
            .whole(digest, self.start, *size)
            .map_err(self.failed())
    }
}

impl Drop for StoredPartialBlob {
    /// Records the bytes since the last frame, so that a run that resumes finds them too.
    fn drop(&mut self) {
        let state = self.state();
        let at = state.stream.at();
        if !state.kept && at > 0 {
            // what is not recorded is fetched again, no more
            let _ = self.record((0, at));
        }
    }
}
