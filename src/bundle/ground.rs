//! A stored blob that comes straight into a bundle: its bytes go to their final places in any order; the
//! frames around them are closed when everything up to their end has passed in order.

use super::contents::Frame;
use super::frame::{self, Passing};
use super::straight::Inner;
use crate::content::{ByteRange, PartialBlob, WriteError};
use crate::model::Descriptor;
use std::fmt;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The frames of one stored blob in the file of a bundle that is being made.
pub(super) struct StoredGround {
    bundle: Arc<Inner>,
    descriptor: Descriptor,
    /// File offset of its first frame.
    start: u64,
    state: Mutex<State>,
}

struct State {
    passing: Passing,
    frames: Vec<Frame>,
    /// Whether nothing need be recorded any more.
    kept: bool,
}

impl State {
    fn new(size: u64) -> State {
        State { passing: Passing::new(size), frames: Vec::new(), kept: false }
    }
}

impl StoredGround {
    pub(super) fn new(bundle: Arc<Inner>, descriptor: &Descriptor, start: u64) -> StoredGround {
        let state = Mutex::new(State::new(descriptor.size));
        StoredGround { bundle, descriptor: descriptor.clone(), start, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> WriteError {
        let path = self.bundle.path.clone();
        move |source| WriteError::io("write", &path, source)
    }
}

impl fmt::Debug for StoredGround {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredGround({} at {})", self.descriptor.digest, self.start)
    }
}

impl PartialBlob for StoredGround {
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), WriteError> {
        let mut done = 0;
        while done < buffer.len() {
            let (place, run) = frame::stored_place(at + done as u64);
            let run = run.min(buffer.len() - done);
            let piece = &mut buffer[done..done + run];
            self.bundle.file.read_exact_at(piece, self.start + place).map_err(self.failed())?;
            done += run;
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WriteError> {
        let mut done = 0;
        while done < bytes.len() {
            let (place, run) = frame::stored_place(at + done as u64);
            let piece = &bytes[done..bytes.len().min(done + run)];
            self.bundle.file.write_all_at(piece, self.start + place).map_err(self.failed())?;
            done += piece.len();
        }
        Ok(())
    }

    fn passed(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let mut state = self.state();
        let passed = state.passing.pass(bytes);
        for frame in &passed {
            for (at, around) in &frame.around {
                self.bundle.file.write_all_at(around, self.start + at).map_err(self.failed())?;
            }
        }
        state.frames.extend(passed.iter().map(|passed| passed.frame));
        if !passed.is_empty() {
            self.record((0, state.passing.at())).map_err(self.failed())?;
        }
        Ok(())
    }

    fn record(&self, island: ByteRange) -> io::Result<()> {
        self.bundle.journal.has(&self.descriptor.digest, island)
    }

    fn clear(&self) -> Result<(), WriteError> {
        *self.state() = State::new(self.descriptor.size);
        self.bundle.journal.lost(&self.descriptor.digest).map_err(self.failed())
    }

    fn keep(&self) -> Result<(), WriteError> {
        let Descriptor { digest, size, .. } = &self.descriptor;
        let mut state = self.state();
        state.kept = true;
        self.bundle.came(digest, std::mem::take(&mut state.frames));
        self.bundle.journal.whole(digest, self.start, *size).map_err(self.failed())
    }
}

impl Drop for StoredGround {
    /// Between two frames nothing was recorded: a run that goes on should find these bytes too.
    fn drop(&mut self) {
        let state = self.state();
        let at = state.passing.at();
        if !state.kept && at > 0 {
            // what is not recorded is fetched again, no more
            let _ = self.record((0, at));
        }
    }
}
