//! Delivers the items of a lock to a registry: from a store, a bundle or upstream.

use super::Client;
use crate::push::{
    GitCollision, GitTarget, Omitted, PushContent, PushError, PushOptions, Pushed, push, push_git,
};
use landfall_content::store::DiskStore;
use landfall_content::upstream::Upstreams;
use landfall_content::{BlobRead, BlobStore, CachePolicy, CachedSource, LocalSource, PartSource};
use landfall_item::lockfile::Lock;
#[cfg(feature = "cli")]
use landfall_item::{Resolver, SignatureVerdicts};
use landfall_model::DestinationMap;
use landfall_model::report::ReportItem;
use std::sync::Arc;

impl Client {
    /// Pushes the items of `lock` from a store or bundle to the destinations of `mapping`. `blobs`
    /// may lack the blobs in `omitted`, as a delta does; the registry must already have them.
    ///
    /// # Errors
    /// If two digests would get the same tag, or the registry cannot be reached. An item whose
    /// delivery fails is a failed item of the result.
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

    /// Pushes the git repositories of `lock` from a store or bundle to a git server. Returns an
    /// item for each.
    ///
    /// # Errors
    /// If two repositories would get the same URL. A repository that cannot be pushed is a failed
    /// item of the result.
    pub async fn push_git(
        &self,
        lock: &Lock,
        blobs: Arc<dyn BlobRead>,
        target: &GitTarget,
    ) -> Result<Vec<ReportItem>, GitCollision> {
        push_git(lock, &blobs, target, &self.sessions, &*self.progress).await
    }

    /// Copies the items of `lock` from upstream to the destinations of `mapping`. Content in
    /// `store` is not downloaded; `keep` says which downloaded content the store keeps.
    ///
    /// # Errors
    /// The errors of [`Client::push`].
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
        let upstream = Arc::new(Upstreams::new(self.sessions.clone()));
        let source = Arc::new(CachedSource::new(store, upstream, keep, self.limits));
        self.deliver(lock, source, &Omitted::default(), mapping, options)
            .await
    }

    /// Verifies the items of `lock` by the rules of the site, without their content. `store` keeps
    /// the signatures that are downloaded.
    #[cfg(feature = "cli")]
    pub(crate) async fn verify_upstream(
        &self,
        lock: &Lock,
        store: &DiskStore,
    ) -> SignatureVerdicts {
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone())
            .with_signatures(self.signatures.clone());
        SignatureVerdicts::of_upstream(lock, &resolver).await
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
            PushContent {
                source,
                omitted,
                demanded: self.signatures.clone(),
            },
            &self.sessions,
            options,
            self.shard,
            self.progress.clone(),
        )
        .await
    }
}
