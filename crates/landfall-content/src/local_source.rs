//! A store or a bundle as a source.

use super::{BlobRead, EntryPart, OpenedPart, PartOrigin, PartSource, read_blocking};
use futures_util::future::BoxFuture;
use landfall_http::{ErrorKind, HttpError};
use std::sync::Arc;

/// A store or a bundle as a [`PartSource`] of what is sent: a stream that ends early or with an
/// error must not be taken for content.
pub struct LocalSource(pub Arc<dyn BlobRead>);

impl PartSource for LocalSource {
    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        let (blobs, part) = (self.0.clone(), part.clone());
        Box::pin(async move {
            if let PartOrigin::Computed(bytes) = part.origin {
                return Ok(OpenedPart {
                    is_checked: true,
                    ..OpenedPart::whole(bytes.into())
                });
            }
            let local = |error: String| HttpError::new(ErrorKind::Local, error);
            let digest = part.descriptor.digest;
            let opening = tokio::task::spawn_blocking(move || match offset {
                0 => blobs.open_whole(&digest),
                _ => blobs.open(&digest, offset),
            });
            let reader = opening.await.map_err(|error| local(error.to_string()))?;
            let stream = read_blocking(reader.map_err(|error| local(error.to_string()))?);
            Ok(OpenedPart::checked(offset, stream))
        })
    }
}
