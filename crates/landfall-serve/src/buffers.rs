//! Buffers for the pieces of bodies, used again: fresh memory would cost as much as reading into
//! it.

use std::sync::{Arc, Mutex, PoisonError};

/// How many free buffers are kept.
const KEPT: usize = 64;

/// The free buffers, all of one size.
pub(super) struct Buffers {
    size: usize,
    free: Mutex<Vec<Box<[u8]>>>,
}

/// A buffer, which is free again when it is dropped.
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    buffers: Arc<Buffers>,
}

impl Buffers {
    /// Buffers of `size` bytes.
    pub(super) fn new(size: usize) -> Arc<Buffers> {
        Arc::new(Buffers {
            size,
            free: Mutex::default(),
        })
    }

    /// A buffer, with whatever bytes.
    pub(super) fn take(self: &Arc<Buffers>) -> Buffer {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let bytes = free.unwrap_or_else(|| vec![0; self.size].into());
        Buffer {
            bytes,
            buffers: self.clone(),
        }
    }
}

impl Buffer {
    /// All of its bytes.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self
            .buffers
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}
