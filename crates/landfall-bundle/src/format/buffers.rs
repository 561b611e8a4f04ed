//! Buffers that are used again: the system clears fresh memory page by page, which takes as long as
//! hashing.

use std::sync::{Mutex, PoisonError};

/// Buffers that nobody uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Smaller buffers are cheap to make, in bytes.
    const LEAST: usize = 128 << 10;

    /// A buffer, with whatever is in it.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default()
    }

    /// Takes back a buffer that is no longer used.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        if buffer.capacity() >= Buffers::LEAST {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(buffer);
        }
    }
}
