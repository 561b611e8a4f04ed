//! The traits for destinations of blobs.

use super::{FailedAttempt, PartOpener, TransferError};
use futures_util::future::BoxFuture;
use landfall_model::Descriptor;
use std::sync::Arc;

/// A destination of blobs: a store, a bundle that is being written, or a registry.
pub trait BlobSink: Send + Sync {
    /// Begins to write a blob, or resumes the write of an earlier attempt or run. Returns `None` if
    /// the blob is already present.
    ///
    /// With `in_order`, it is written from the first byte to the last over one connection. This is
    /// used after an attempt received wrong bytes, because ranges may have been the cause.
    ///
    /// # Errors
    /// If the blob cannot be written and another attempt would not help.
    fn begin<'a>(
        &'a self,
        blob: &'a Descriptor,
        in_order: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn BlobWrite>>, TransferError>>;

    /// Whether [`BlobSink::begin`] uses only local files. It may then take long without a request:
    /// it hashes what an earlier run wrote, and waits while another process writes the blob.
    fn begins_locally(&self) -> bool {
        false
    }
}

/// The write of one blob to a [`BlobSink`].
pub trait BlobWrite: Send {
    /// Reads the missing bytes from `opener` and finishes the write. The blob becomes visible only
    /// when its size and digest are right.
    ///
    /// # Errors
    /// If the source or the destination fails; the error names the side.
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>>;
}
