//! What all handlers share.

use super::NodeGuides;
use super::ServerInfo;
use super::auth::HtpasswdUsers;
use super::buffers::Buffers;
use super::bundles::Bundles;
use super::connections::{InFlight, Seats};
use super::freshness::Freshness;
use super::known_blobs::KnownBlobs;
use super::observe::Observer;
use super::options::OutdatedCheck;
use super::sign_in_queue::SignInQueue;
use super::upload_sessions::Uploads;
use super::writable::WritableStore;
use landfall_content::{BlobChain, VerifiedRead};
use landfall_model::Limits;
use landfall_model::report::Progress;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// What a request is answered from. A reload makes a new one.
pub(super) struct State {
    /// The names in the bundles, and what they stand for.
    pub(super) bundles: Bundles,
    /// All content: that of the bundles first, then what was pushed.
    pub(super) blobs: BlobChain,
    /// The same content, for clients: each of the storages by itself.
    pub(super) content: Vec<Arc<dyn VerifiedRead>>,
    /// What was served before by name, and is still there by digest.
    pub(super) earlier: Bundles,
    /// Whether this state is outdated by now.
    pub(super) is_outdated: Option<OutdatedCheck>,
    /// Who may use the API; everybody where it is `None`.
    pub(super) users: Option<HtpasswdUsers>,
    /// How to point nodes here.
    pub(super) guides: Option<NodeGuides>,
    /// `None` where all addresses speak plain http.
    pub(super) tls: Option<TlsAcceptor>,
    /// What stays as long as the server runs.
    pub(super) kept: Arc<Kept>,
}

/// What stays as long as the server runs.
pub(super) struct Kept {
    /// Which content is known to be right.
    pub(super) known: KnownBlobs,
    /// For the pieces of bodies.
    pub(super) buffers: Arc<Buffers>,
    /// The folder of `--writable`.
    pub(super) writable: Option<Arc<WritableStore>>,
    pub(super) uploads: Uploads,
    /// Whether there may be content that nothing names.
    pub(super) to_sweep: AtomicBool,
    pub(super) seats: Seats,
    pub(super) in_flight: InFlight,
    /// Who waits for the comparison of a password.
    pub(super) sign_ins: Arc<SignInQueue>,
    /// For each manifest that is in memory because it was pushed, or for a list of referrers.
    pub(super) manifest_slots: Arc<Semaphore>,
    pub(super) observer: Arc<Observer>,
    /// Who asks whether a state is outdated.
    pub(super) freshness: Freshness<Arc<State>>,
    /// Whether big blobs are answered by links.
    pub(super) redirect: bool,
    /// Whether the server is about to stop: it still answers, and is not ready.
    pub(super) draining: AtomicBool,
    pub(super) limits: Limits,
    /// Where warnings go.
    pub(super) notes: Arc<dyn Progress>,
    /// `HOST:PORT` at which the server listens first of all.
    pub(super) address: String,
    /// All URLs of the server.
    pub(super) urls: Vec<String>,
    /// All ports at which it listens.
    pub(super) ports: Vec<u16>,
}

impl Deref for State {
    type Target = Kept;

    fn deref(&self) -> &Kept {
        &self.kept
    }
}

impl State {
    /// What is told when the server has started.
    pub(super) fn serving(&self) -> ServerInfo {
        ServerInfo {
            urls: self.urls.clone(),
            items: self.bundles.counts(),
            writable: self.writable.is_some(),
        }
    }
}
