//! Reusable buffers for the pieces of response bodies. Allocating fresh memory would take as long
//! as reading the content into it, because the system clears fresh memory page by page.

use landfall_model::locked;
use std::sync::{Arc, Mutex, MutexGuard};

/// The number of free buffers that are kept.
const MAX_FREE: usize = 64;

/// A pool of buffers of one size.
pub(crate) struct BodyBuffers {
    size: usize,
    free: Mutex<Vec<Box<[u8]>>>,
}

/// A buffer that returns to its pool when it is dropped.
pub(crate) struct BodyBuffer {
    bytes: Box<[u8]>,
    pool: Arc<BodyBuffers>,
}

impl BodyBuffers {
    /// A pool of buffers of `size` bytes.
    pub(crate) fn new(size: usize) -> Arc<BodyBuffers> {
        Arc::new(BodyBuffers {
            size,
            free: Mutex::default(),
        })
    }

    /// Takes a buffer; its content is unspecified.
    pub(crate) fn take(self: &Arc<BodyBuffers>) -> BodyBuffer {
        let free = self.free().pop();
        BodyBuffer {
            // allocated after the lock is released, because the allocation may take long
            bytes: free.unwrap_or_else(|| vec![0; self.size].into()),
            pool: self.clone(),
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        locked(&self.free)
    }
}

impl BodyBuffer {
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for BodyBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for BodyBuffer {
    fn drop(&mut self) {
        let mut free = self.pool.free();
        // a burst of clients must not keep its memory forever
        if free.len() < MAX_FREE {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}
