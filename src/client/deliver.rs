//! Delivering: what a lock names goes to a registry, from a store, a bundle or straight from
//! upstream.

use super::Client;
use crate::push::{Omitted, PushContent, PushError, PushOptions, Pushed, push};
use landfall_content::store::DiskStore;
use landfall_content::upstream::Upstreams;
use landfall_content::{BlobRead, BlobStore, CachePolicy, CachedSource, LocalSource, PartSource};
use landfall_item::lockfile::Lock;
use landfall_model::DestinationMap;
use std::sync::Arc;

impl Client {
    /// Pushes what `lock` names from a store or bundle to the destinations of `mapping`. The
    /// registry must already have what is `omitted` from `blobs`, as from a delta.
    ///
    /// # Errors
    /// Returns an error if nothing could be uploaded. What fails later is a failed item.
    pub async fn push(
        &self,
        lock: &Lock,
        blobs: Arc<dyn BlobRead>,
        omitted: &Omitted,
        mapping: &DestinationMap,
        options: PushOptions,
    ) -> Result<Pushed, PushError> {
        self.deliver(
            lock,
            Arc::new(LocalSource(blobs)),
            omitted,
            mapping,
            options,
        )
        .await
    }

    /// Copies what `lock` names from upstream to the destinations of `mapping`. `store` is read
    /// before upstream; `keep` says what it keeps of the downloaded content.
    ///
    /// # Errors
    /// Returns the errors of [`Client::push`].
    pub async fn mirror(
        &self,
        lock: &Lock,
        store: &DiskStore,
        keep: CachePolicy,
        mapping: &DestinationMap,
        options: PushOptions,
    ) -> Result<Pushed, PushError> {
        self.mirror_with_store(lock, Arc::new(store.clone()), keep, mapping, options)
            .await
    }

    /// Like [`Client::mirror`], with any kind of store.
    pub(crate) async fn mirror_with_store(
        &self,
        lock: &Lock,
        store: Arc<dyn BlobStore>,
        keep: CachePolicy,
        mapping: &DestinationMap,
        options: PushOptions,
    ) -> Result<Pushed, PushError> {
        let upstream = Arc::new(Upstreams(self.sessions.clone()));
        let source = Arc::new(CachedSource::new(store, upstream, keep, self.limits));
        self.deliver(lock, source, &Omitted::default(), mapping, options)
            .await
    }

    async fn deliver(
        &self,
        lock: &Lock,
        source: Arc<dyn PartSource>,
        omitted: &Omitted,
        mapping: &DestinationMap,
        options: PushOptions,
    ) -> Result<Pushed, PushError> {
        push(
            lock,
            mapping,
            PushContent { source, omitted },
            &self.sessions,
            options,
            self.shard,
            self.progress.clone(),
        )
        .await
    }
}
