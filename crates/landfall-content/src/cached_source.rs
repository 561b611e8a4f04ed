//! Upstream with a store in front of it.

use super::blocking::blocking;
use super::follower::{Bringing, follow};
use super::{BlobStore, EntryPart, IdleSlots, LocalSource, OpenedPart, PartSource, Transfer};
use futures_util::future::BoxFuture;
use landfall_http::{HttpError, UnlimitedSlot, inherit_upload_mark};
use landfall_model::Limits;
use landfall_model::report::SilentProgress;
use std::sync::Arc;
use tokio::sync::{Semaphore, oneshot, watch};

/// What a [`CachedSource`] keeps of the content that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// Nothing: content of the store comes from there, the rest streams past.
    ReadOnly,
    /// Everything: what the store lacks is brought into it first.
    ReadThrough,
}

/// Upstream with a store in front of it.
pub struct CachedSource {
    store: Arc<dyn BlobStore>,
    local: LocalSource,
    upstream: Arc<dyn PartSource>,
    keep: CachePolicy,
    limits: Limits,
    slots: IdleSlots,
}

impl CachedSource {
    /// `upstream`, with `store` in front.
    pub fn new(
        store: Arc<dyn BlobStore>,
        upstream: Arc<dyn PartSource>,
        keep: CachePolicy,
        limits: Limits,
    ) -> CachedSource {
        // there is no end of a run to wait for: what comes is wanted now
        let (_, begun) = watch::channel(true);
        let slots = IdleSlots::new(Arc::new(Semaphore::new(limits.jobs)), begun);
        CachedSource {
            local: LocalSource(store.clone()),
            store,
            upstream,
            keep,
            limits,
            slots,
        }
    }

    /// Brings a part into the store, and reads it there while it comes.
    async fn open_coming(&self, part: &EntryPart, offset: u64) -> Result<OpenedPart, HttpError> {
        let (by, begun) = oneshot::channel();
        let sink = self
            .store
            .clone()
            .followed(self.limits, self.slots.clone(), by);
        let (source, limits) = (self.upstream.clone(), self.limits);
        // bytes are counted on their way out, not a second time on their way in
        let transfer = Transfer {
            source,
            sink,
            limits,
            progress: Arc::new(SilentProgress),
        };
        let wanted = part.clone();
        // the upload that reads it lends its slot while nothing comes
        let bringing = async move { transfer.bring(&wanted, Arc::new(UnlimitedSlot)).await };
        let mut bringing = Bringing(tokio::spawn(inherit_upload_mark(bringing)));
        match begun.await {
            Ok(follower) => {
                let stream = follow(follower, bringing, (offset, part.descriptor.size)).await?;
                Ok(OpenedPart::checked(offset, stream))
            }
            // it is there by now, or no write could begin
            Err(_) => {
                bringing.end().await?;
                self.local.open(part, offset).await
            }
        }
    }
}

impl PartSource for CachedSource {
    fn host<'a>(&self, part: &'a EntryPart) -> &'a str {
        self.upstream.host(part)
    }

    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        Box::pin(async move {
            let (store, descriptor) = (self.store.clone(), part.descriptor.clone());
            let is_here = blocking(move || store.holds(&descriptor, false)).await;
            match (is_here.map_err(|failed| *failed.why)?, self.keep) {
                (true, _) => self.local.open(part, offset).await,
                (false, CachePolicy::ReadOnly) => self.upstream.open(part, offset).await,
                (false, CachePolicy::ReadThrough) => self.open_coming(part, offset).await,
            }
        })
    }
}
