//! Reusable buffers: the system clears fresh memory page by page, which takes as long as hashing.

use landfall_model::locked;
use std::sync::Mutex;

/// A pool of unused buffers.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffers(Mutex<Vec<Vec<u8>>>);

impl FrameBuffers {
    /// The minimum capacity in bytes of a buffer that is kept. Smaller ones are cheap to allocate.
    const LEAST: usize = 128 << 10;

    /// Removes a buffer from the pool, or creates one. Its length and content are unspecified.
    pub(crate) fn take(&self) -> Vec<u8> {
        locked(&self.0).pop().unwrap_or_default()
    }

    /// Returns a buffer to the pool.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        if buffer.capacity() >= FrameBuffers::LEAST {
            locked(&self.0).push(buffer);
        }
    }
}
