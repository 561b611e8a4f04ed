//! The traits for what blobs are written to.

use super::{FailedAttempt, PartOpener, TransferError};
use futures_util::future::BoxFuture;
use landfall_model::Descriptor;
use std::sync::Arc;

/// What blobs are written to: a store, a bundle that is being written, or a registry.
pub trait BlobSink: Send + Sync {
    /// Begins to write a blob, or resumes what an earlier attempt or run left. Returns `None` if
    /// the blob is already present.
    ///
    /// With `in_order`, it is written from the first byte to the last over one connection. This is
    /// used after an attempt received wrong bytes, as ranges may have been the cause.
    ///
    /// # Errors
    /// If the blob cannot be written and another attempt would not help.
    fn begin<'a>(
        &'a self,
        blob: &'a Descriptor,
        in_order: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn BlobWrite>>, TransferError>>;
}

/// The write of one blob to a [`BlobSink`].
pub trait BlobWrite: Send {
    /// Reads what is missing from `opener` and finishes the write. The blob becomes visible only
    /// when its size and digest are right.
    ///
    /// # Errors
    /// What failed, and on which side.
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>>;
}
