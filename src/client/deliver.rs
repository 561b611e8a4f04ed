//! Delivers the items of a lock to a registry: from a store, a bundle or upstream.

use crate::push::{GitTarget, Omitted, PushContent, PushOptions, Pushed, push, push_git};
use landfall_content::archives::{ImportedBlobs, SourceArchive};
use landfall_content::registry::RegistrySessions;
use landfall_content::store::DiskStore;
use landfall_content::upstream::Upstreams;
use landfall_content::{BlobRead, BlobStore, CachePolicy, CachedSource, LocalSource, PartSource};
#[cfg(feature = "cli")]
use landfall_item::SignatureVerdicts;
use landfall_item::lockfile::Lock;
use landfall_model::report::{Progress, ReportItem, RunReport};
use landfall_model::{DestinationMap, Failure, Limits, Shard, locked};
use landfall_signature::SignaturePolicy;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

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
    ) -> Result<Pushed, Failure> {
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
    ) -> Result<Vec<ReportItem>, Failure> {
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
    ) -> Result<Pushed, Failure> {
        let store = Arc::new(store.clone());
        Box::pin(self.mirror_with_store(lock, store, keep, mapping, options)).await
    }

    /// Like [`Client::mirror`], with any kind of store.
    pub(crate) async fn mirror_with_store(
        &self,
        lock: &Lock,
        store: Arc<dyn BlobStore>,
        keep: CachePolicy,
        mapping: &DestinationMap,
        options: PushOptions,
    ) -> Result<Pushed, Failure> {
        let upstream = self.upstreams();
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
        let mut resolver = self.resolver(store);
        resolver.lock_folder.clone_from(&self.lock_folder);
        resolver.signatures = self.signatures.clone();
        SignatureVerdicts::of_upstream(lock, &resolver).await
    }

    async fn deliver(
        &self,
        lock: &Lock,
        source: Arc<dyn PartSource>,
        omitted: &Omitted,
        mapping: &DestinationMap,
        options: PushOptions,
    ) -> Result<Pushed, Failure> {
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

// The client itself, and the report of its traffic.

/// Connections to registries and web servers, and the operations that use them. All operations of
/// one client share its limits per host, logins, and the record of contacted hosts.
pub struct Client {
    pub(super) sessions: Arc<RegistrySessions>,
    pub(super) limits: Limits,
    pub(super) progress: Arc<dyn Progress>,
    pub(super) archives: Arc<[SourceArchive]>,
    /// The folder of the lock, to which paths of local content are relative.
    pub(super) lock_folder: PathBuf,
    /// The rules of the site for signatures of images.
    pub(super) signatures: SignaturePolicy,
    /// The shard of each lock that is pulled and pushed.
    pub(super) shard: Shard,
    /// The blobs that were copied from archives.
    pub(super) imports: Mutex<Vec<ImportedBlobs>>,
}

impl Client {
    /// The sources of the content of a lock.
    pub(super) fn upstreams(&self) -> Arc<dyn PartSource> {
        Arc::new(Upstreams::new(self.sessions.clone()).beside_lock_in(&self.lock_folder))
    }

    /// The blobs that were copied from archives so far, per archive.
    pub(crate) fn imports(&self) -> Vec<ImportedBlobs> {
        locked(&self.imports).clone()
    }

    /// The shard of each lock that is pulled and pushed.
    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    pub(crate) fn shared_sessions(&self) -> Arc<RegistrySessions> {
        self.sessions.clone()
    }

    pub(crate) fn sessions(&self) -> &RegistrySessions {
        &self.sessions
    }

    /// Records in `store` the hosts that this client contacted, for `landfall egress`.
    #[cfg(feature = "cli")]
    pub(crate) fn remember_hosts(&self, store: &DiskStore, command: &str) {
        let hosts = self.sessions.transport().ledger().hosts();
        let remembered = crate::egress::remember(store, &hosts, command);
        // The command itself has reported a full disk, with the amount of space that is needed.
        if let Some(error) = remembered.err().filter(|error| !error.is_full_disk()) {
            self.progress.note(&format!(
                "the hosts of this run are not recorded for `landfall egress`: {error}"
            ));
        }
    }

    /// Returns a report of `items`, with the traffic of this client so far.
    pub fn report(&self, items: Vec<ReportItem>) -> RunReport {
        let hosts = self.sessions.transport().ledger().hosts();
        RunReport {
            items,
            bytes_transferred: hosts.iter().map(|host| host.bytes).sum(),
            requests: hosts.iter().map(|host| host.requests).sum(),
            hosts,
            ..RunReport::default()
        }
    }
}
