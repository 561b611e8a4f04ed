//! Delivering: what a lock names goes to a registry, from a store, a bundle or straight from upstream.

use super::Client;
use crate::push::{Omitted, PushContent, PushError, PushOptions, Pushed, push};
use landfall_content::store::DiskStore;
use landfall_content::upstream::Upstreams;
use landfall_content::{BlobRead, BlobStore, CachePolicy, CachedSource, LocalSource, PartSource};
use landfall_item::lockfile::Lock;
use landfall_model::DestinationMap;
use std::sync::Arc;

impl Client {
    /// Delivers what `lock` names from a store or bundle to the destinations of `mapping`. What is
    /// `omitted` there, as a delta omits what its bases have, must stand at the registry.
    ///
    /// # Errors
    /// What stops it before the first byte. What fails later is an item that says so.
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

    /// Delivers what `lock` names from upstream to the destinations of `mapping`. `store` is asked
    /// first, and keeps of what passes what `keep` says.
    ///
    /// # Errors
    /// As [`Client::push`].
    pub async fn mirror(
        &self,
        lock: &Lock,
        (store, keep): (&DiskStore, CachePolicy),
        mapping: &DestinationMap,
        options: PushOptions,
    ) -> Result<Pushed, PushError> {
        self.mirror_by(lock, (Arc::new(store.clone()), keep), mapping, options)
            .await
    }

    /// As [`Client::mirror`] with any store.
    pub(crate) async fn mirror_by(
        &self,
        lock: &Lock,
        (store, keep): (Arc<dyn BlobStore>, CachePolicy),
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
