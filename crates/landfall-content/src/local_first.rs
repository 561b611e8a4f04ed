//! Upstream, with local content in front of it. Local content is checked like all other; where it
//! is wrong, upstream is asked.

use super::{BlobRead, EntryPart, LocalSource, OpenedPart, PartSource};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::Digest;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// How many pieces of local content are read at once: more cost memory and are no faster.
const STREAMS: usize = 4;

/// Upstream, with local content in front of it.
pub struct LocalFirst {
    blobs: Arc<dyn BlobRead>,
    local: LocalSource,
    upstream: Arc<dyn PartSource>,
    streams: Arc<Semaphore>,
    /// Local content that turned out wrong.
    wrong: Arc<Mutex<HashSet<Digest>>>,
}

impl LocalFirst {
    /// `upstream`, with `blobs` in front.
    pub fn new(blobs: Arc<dyn BlobRead>, upstream: Arc<dyn PartSource>) -> LocalFirst {
        let local = LocalSource(blobs.clone());
        LocalFirst {
            blobs,
            local,
            upstream,
            streams: Arc::new(Semaphore::new(STREAMS)),
            wrong: Arc::default(),
        }
    }

    fn is_here(&self, part: &EntryPart) -> bool {
        let digest = &part.descriptor.digest;
        !self
            .wrong
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(digest)
            && self
                .blobs
                .stat(digest)
                .is_ok_and(|size| size == Some(part.descriptor.size))
    }

    async fn open_here(&self, part: &EntryPart, offset: u64) -> Result<OpenedPart, HttpError> {
        let slot = self.streams.clone().acquire_owned().await;
        let slot = slot.map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?;
        let opened = self.local.open(part, offset).await?;
        let stream = opened.stream.map(move |piece| {
            let _until_it_ends = &slot;
            // damage is worth another attempt, which upstream gets
            piece.map_err(|error| HttpError::new(ErrorKind::Invalid, error.to_string()))
        });
        let (wrong, digest) = (self.wrong.clone(), part.descriptor.digest.clone());
        Ok(
            OpenedPart::unchecked(opened.start, stream.boxed()).on_wrong(move || {
                wrong
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(digest);
            }),
        )
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
            if self.is_here(part)
                && let Ok(opened) = self.open_here(part, offset).await
            {
                return Ok(opened);
            }
            self.upstream.open(part, offset).await
        })
    }
}
