//! A store or a bundle as a source of parts.

use super::{BlobRead, EntryPart, OpenedPart, PartOrigin, PartSource, read_blocking};
use futures_util::future::BoxFuture;
use landfall_http::{ErrorKind, HttpError};
use std::sync::Arc;

/// A store or a bundle as a [`PartSource`]. A damaged blob shows in the stream: it ends early or
/// with an error, and the receiver must not accept such a blob.
pub struct LocalSource(pub Arc<dyn BlobRead>);

impl PartSource for LocalSource {
    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        let blobs = self.0.clone();
        let part = part.clone();
        Box::pin(async move {
            if let PartOrigin::Computed(bytes) = part.origin {
                return Ok(OpenedPart {
                    // computed from the lock, whose digest was verified
                    is_checked: true,
                    ..OpenedPart::whole(bytes.into())
                });
            }
            let digest = part.descriptor.digest;
            let opening = tokio::task::spawn_blocking(move || {
                // a read of the whole blob can verify the digest, a read from the middle cannot
                if offset == 0 {
                    blobs.open_whole(&digest)
                } else {
                    blobs.open(&digest, offset)
                }
            });
            let reader = match opening.await {
                Ok(Ok(reader)) => reader,
                Ok(Err(error)) => return Err(HttpError::new(ErrorKind::Local, error.to_string())),
                Err(error) => return Err(HttpError::new(ErrorKind::Local, error.to_string())),
            };
            Ok(OpenedPart::checked(offset, read_blocking(reader)))
        })
    }
}
