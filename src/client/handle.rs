//! The client itself: its connections, and what it has sent and received so far.

use landfall_content::archives::{ImportedBlobs, SourceArchive};
use landfall_content::registry::RegistrySessions;
use landfall_content::store::DiskStore;
use landfall_model::report::{Progress, ReportItem, RunReport};
use landfall_model::{Limits, Shard};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Connections to registries and web servers, and the verbs that use them. What the verbs of one
/// client ask of a host counts together: its limits, its sign-in, the ledger of hosts.
pub struct Client {
    pub(super) sessions: Arc<RegistrySessions>,
    pub(super) limits: Limits,
    pub(super) progress: Arc<dyn Progress>,
    pub(super) archives: Arc<[SourceArchive]>,
    /// Which part of a lock is pulled and delivered.
    pub(super) shard: Shard,
    /// What came of the archives.
    pub(super) taken: Mutex<Vec<ImportedBlobs>>,
}

impl Client {
    pub(super) fn new(
        sessions: Arc<RegistrySessions>,
        limits: Limits,
        progress: Arc<dyn Progress>,
        archives: Vec<SourceArchive>,
        shard: Shard,
    ) -> Client {
        Client {
            sessions,
            limits,
            progress,
            archives: archives.into(),
            shard,
            taken: Mutex::default(),
        }
    }

    /// The longest wait that others may ask for.
    pub(crate) fn max_wait(&self) -> Duration {
        Duration::from_secs(self.limits.max_wait_secs)
    }

    /// What has come of the archives so far.
    pub(crate) fn taken(&self) -> Vec<ImportedBlobs> {
        self.taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Which part of a lock it pulls and delivers.
    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    pub(crate) fn shared_sessions(&self) -> Arc<RegistrySessions> {
        self.sessions.clone()
    }

    pub(crate) fn sessions(&self) -> &RegistrySessions {
        &self.sessions
    }

    /// Keeps in `store` which hosts this client has sent requests to, for `landfall egress`.
    #[cfg(feature = "cli")]
    pub(crate) fn remember_hosts(&self, store: &DiskStore, command: &str) {
        let hosts = self.sessions.transport().ledger().hosts();
        let remembered = crate::egress::remember(store, &hosts, command);
        // a full disk is told by what needed more of it
        if let Some(error) = remembered.err().filter(|error| !error.is_full_disk()) {
            self.progress.note(&format!(
                "`landfall egress` will not know this run: {error}"
            ));
        }
    }

    /// A report of `items` with everything that this client has sent and received so far.
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
