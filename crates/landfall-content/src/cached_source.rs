//! An upstream source with a store as its cache.

use crate::follower::{BackgroundTransfer, follow};
use crate::verified_writer::blocking;
use crate::{
    BlobStore, EntryPart, IdleSlots, LocalSource, OpenedPart, PartSource, Transfer, TransferSlots,
};
use futures_util::future::BoxFuture;
use landfall_http::{Activity, HttpError, UnlimitedSlot, inherit_upload_mark};
use landfall_model::Limits;
use landfall_model::report::SilentProgress;
use std::sync::Arc;
use tokio::sync::oneshot;
use tracing::debug;

/// How a [`CachedSource`] handles blobs that the store lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// The blobs are streamed from upstream and not stored.
    ReadOnly,
    /// The blobs are written to the store, and read from there while they arrive.
    ReadThrough,
}

/// An upstream source with a store as its cache: parts that the store has are read from it.
pub struct CachedSource {
    store: Arc<dyn BlobStore>,
    local: LocalSource,
    upstream: Arc<dyn PartSource>,
    policy: CachePolicy,
    limits: Limits,
    slots: IdleSlots,
}

impl CachedSource {
    /// Puts `store` in front of `upstream`.
    pub fn new(
        store: Arc<dyn BlobStore>,
        upstream: Arc<dyn PartSource>,
        policy: CachePolicy,
        limits: Limits,
    ) -> CachedSource {
        // a reader waits for each blob, so helpers need not wait for the end of the run
        let slots = IdleSlots::new(TransferSlots::for_helpers(limits.jobs));
        CachedSource {
            local: LocalSource(store.clone()),
            store,
            upstream,
            policy,
            limits,
            slots,
        }
    }

    /// Transfers a part into the store and reads it there while it arrives.
    async fn read_through(&self, part: &EntryPart, offset: u64) -> Result<OpenedPart, HttpError> {
        let (follower, begun) = oneshot::channel();
        // a sink of its own, because the follower is for this blob alone
        let slots = Some(self.slots.clone());
        let sink = self.store.clone();
        let sink = sink.sink(self.limits, slots, Some(follower));
        let transfer = Transfer {
            source: self.upstream.clone(),
            sink,
            limits: self.limits,
            // progress counts the bytes when they are uploaded, so they are not counted here
            progress: Arc::new(SilentProgress),
            // the request that reads the part is in flight meanwhile
            activity: Activity::default(),
        };
        let part_to_fetch = part.clone();
        // this transfer needs no slot: the upload that reads the part already has one, and lends it
        // while no bytes arrive
        let fetching = async move { transfer.run(&part_to_fetch, Arc::new(UnlimitedSlot)).await };
        let mut fetching = BackgroundTransfer(tokio::spawn(inherit_upload_mark(fetching)));
        match begun.await {
            Ok(follower) => {
                let size = part.descriptor.size;
                let stream = follow(follower, fetching, offset..size).await?;
                Ok(OpenedPart::checked(offset, stream))
            }
            // the blob is present by now, the store shows no partial blobs, or the write failed
            Err(_) => {
                fetching.finish().await?;
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
            let store = self.store.clone();
            let descriptor = part.descriptor.clone();
            // on a blocking thread: a blob without a record in the journal is hashed here
            let is_present = blocking(move || store.has_blob(&descriptor, false))
                .await
                .map_err(|failed| *failed.why)?;
            let digest = &part.descriptor.digest;
            if is_present {
                debug!(%digest, offset, "read from the store");
                return self.local.open(part, offset).await;
            }
            debug!(%digest, offset, policy = ?self.policy, "not in the store; read from upstream");
            match self.policy {
                CachePolicy::ReadOnly => self.upstream.open(part, offset).await,
                CachePolicy::ReadThrough => self.read_through(part, offset).await,
            }
        })
    }
}
