//! The state that all request handlers share.

use crate::body_buffers::BodyBuffers;
use crate::catalog::BundleCatalog;
use crate::connections::{ConnectionTable, RequestLimiter};
use crate::git::GitDatabases;
use crate::observe::RequestObserver;
use crate::options::{NodeGuides, OutdatedCheck, ServerInfo};
use crate::refresh::RefreshHandle;
use crate::sign_in::{HtpasswdUsers, SignInQueue};
use crate::upload_sessions::UploadSessions;
use crate::verified_blobs::VerifiedBlobs;
use crate::writable::WritableStore;
use landfall_content::{BlobChain, VerifiedRead};
use landfall_model::Limits;
use landfall_model::report::Progress;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// The state from which requests are answered. A reload creates a new state; requests in progress
/// keep the old one.
pub(crate) struct ServerState {
    pub(crate) bundles: BundleCatalog,
    /// All content, in the order in which it is searched: bundles and bases, then generated
    /// metadata, then pushed content.
    pub(crate) blobs: BlobChain,
    /// The same content by source: blobs are verified for each source before they are sent.
    pub(crate) content: Vec<Arc<dyn VerifiedRead>>,
    /// Bundles that were served before; their manifests are still served by digest.
    pub(crate) earlier: BundleCatalog,
    /// The open git repositories. A reload opens them again: they would otherwise hold the files of
    /// a bundle that was replaced, and the space of these files.
    pub(crate) git_databases: GitDatabases,
    pub(crate) is_outdated: Option<OutdatedCheck>,
    /// The users of the API; `None` allows everybody.
    pub(crate) users: Option<HtpasswdUsers>,
    pub(crate) guides: Option<NodeGuides>,
    /// `None` without a certificate: every address then accepts only plain http.
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) context: Arc<ServerContext>,
}

/// The part of the state that a reload keeps.
pub(crate) struct ServerContext {
    pub(crate) verified_blobs: VerifiedBlobs,
    pub(crate) body_buffers: Arc<BodyBuffers>,
    /// The folder of `--writable`; `None` if the server is read-only.
    pub(crate) writable: Option<Arc<WritableStore>>,
    pub(crate) uploads: UploadSessions,
    /// Set after a deletion: there may be blobs that no manifest names any more.
    pub(crate) needs_sweep: AtomicBool,
    pub(crate) connections: ConnectionTable,
    pub(crate) requests: RequestLimiter,
    /// Limits the memory of answers that are documents or packs.
    pub(crate) answer_memory: RequestLimiter,
    /// Limits how many documents are built at once.
    pub(crate) documents: Semaphore,
    /// Limits how many requests select the objects of a pack at once.
    pub(crate) git_selections: Arc<Semaphore>,
    pub(crate) sign_ins: Arc<SignInQueue>,
    /// Limits how many manifests are in memory at once, for pushes and referrers requests.
    pub(crate) manifest_slots: Arc<Semaphore>,
    pub(crate) observer: Arc<RequestObserver>,
    pub(crate) refresh: RefreshHandle<Arc<ServerState>>,
    /// Whether requests for large blobs are redirected to an object store.
    pub(crate) redirect: bool,
    /// Set when the server received the signal to stop: it still answers, but `/readyz` reports
    /// 503.
    pub(crate) draining: AtomicBool,
    pub(crate) limits: Limits,
    /// Receives warnings and other messages.
    pub(crate) progress: Arc<dyn Progress>,
    /// The first address at which the server listens, `HOST:PORT`.
    pub(crate) address: String,
    /// The URLs of all addresses.
    pub(crate) urls: Vec<String>,
    /// The ports of all addresses.
    pub(crate) ports: Vec<u16>,
}

impl Deref for ServerState {
    type Target = ServerContext;

    fn deref(&self) -> &ServerContext {
        &self.context
    }
}

impl ServerState {
    /// The properties that the server reports after the start.
    pub(crate) fn info(&self) -> ServerInfo {
        ServerInfo {
            urls: self.urls.clone(),
            items: self.bundles.counts(),
            writable: self.writable.is_some(),
        }
    }
}
