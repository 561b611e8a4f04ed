//! Where content is brought to.

use super::{FailedAttempt, PartOpener, TransferError};
use futures_util::future::BoxFuture;
use landfall_model::Descriptor;
use std::sync::Arc;

/// Where content is brought to: a store, a bundle that is being written, or a registry.
pub trait BlobSink: Send + Sync {
    /// Begins to write content, or resumes what an earlier attempt or run left. `None` means that
    /// it is there. With `in_order` it is written from its beginning to its end: what came in any
    /// other order was wrong.
    ///
    /// # Errors
    /// When it cannot be written, and no other attempt can fix that.
    fn begin<'a>(
        &'a self,
        blob: &'a Descriptor,
        in_order: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn BlobWrite>>, TransferError>>;
}

/// One piece of content that is being written to a [`BlobSink`].
pub trait BlobWrite: Send {
    /// Takes what is not there from `opener`, and finishes: the content counts when its size and
    /// digest are right.
    ///
    /// # Errors
    /// What broke.
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>>;
}
