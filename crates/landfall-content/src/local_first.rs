//! An upstream source with local copies in front of it. Local copies are verified like downloads;
//! if a copy is wrong, upstream is used instead.

use super::{BlobRead, EntryPart, LocalSource, OpenedPart, PartSource};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Digest, locked};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use tracing::debug;

/// How many local blobs are read at the same time. More would need memory, but would not be faster.
const MAX_LOCAL_STREAMS: usize = 4;

/// An upstream source with local copies in front of it.
pub struct LocalFirst {
    blobs: Arc<dyn BlobRead>,
    local: LocalSource,
    upstream: Arc<dyn PartSource>,
    local_streams: Arc<Semaphore>,
    /// Local copies that turned out wrong.
    corrupt: Arc<Mutex<HashSet<Digest>>>,
}

impl LocalFirst {
    /// Puts the local copies in `blobs` in front of `upstream`.
    pub fn new(blobs: Arc<dyn BlobRead>, upstream: Arc<dyn PartSource>) -> LocalFirst {
        let local = LocalSource(blobs.clone());
        LocalFirst {
            blobs,
            local,
            upstream,
            local_streams: Arc::new(Semaphore::new(MAX_LOCAL_STREAMS)),
            corrupt: Arc::default(),
        }
    }

    /// Whether there is a local copy of the right size that has not turned out wrong.
    fn has_local_copy(&self, part: &EntryPart) -> bool {
        let digest = &part.descriptor.digest;
        let is_corrupt = locked(&self.corrupt).contains(digest);
        let size = self.blobs.stat(digest);
        !is_corrupt && size.is_ok_and(|size| size == Some(part.descriptor.size))
    }

    async fn open_local_copy(
        &self,
        part: &EntryPart,
        offset: u64,
    ) -> Result<OpenedPart, HttpError> {
        let slot = self
            .local_streams
            .clone()
            .acquire_owned()
            .await
            .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?;
        let opened = self.local.open(part, offset).await?;
        let stream = opened.stream.map(move |piece| {
            // captured by the closure, so the slot is released when the stream is dropped
            let _held_until_the_end = &slot;
            // `Invalid` leads to another attempt, which reads from upstream
            piece.map_err(|error| HttpError::new(ErrorKind::Invalid, error.to_string()))
        });
        let corrupt = self.corrupt.clone();
        let digest = part.descriptor.digest.clone();
        let opened = OpenedPart::unchecked(opened.start, stream.boxed());
        Ok(opened.on_corrupt(move || {
            locked(&corrupt).insert(digest);
        }))
    }
}

impl PartSource for LocalFirst {
    fn host<'a>(&self, part: &'a EntryPart) -> &'a str {
        self.upstream.host(part)
    }

    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        Box::pin(async move {
            if self.has_local_copy(part)
                // not an error: the part can be fetched from upstream
                && let Ok(opened) = self.open_local_copy(part, offset).await
            {
                debug!(digest = %part.descriptor.digest, offset, "read from local content");
                return Ok(opened);
            }
            self.upstream.open(part, offset).await
        })
    }
}
