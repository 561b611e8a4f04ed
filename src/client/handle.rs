//! The client itself, and the report of its traffic.

use landfall_content::archives::{ImportedBlobs, SourceArchive};
use landfall_content::registry::RegistrySessions;
use landfall_content::store::DiskStore;
use landfall_model::locked;
use landfall_model::report::{Progress, ReportItem, RunReport};
use landfall_model::{Limits, Shard};
use landfall_signature::SignaturePolicy;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Connections to registries and web servers, and the operations that use them. All operations of
/// one client share its limits per host, logins, and the record of contacted hosts.
pub struct Client {
    pub(super) sessions: Arc<RegistrySessions>,
    pub(super) limits: Limits,
    pub(super) progress: Arc<dyn Progress>,
    pub(super) archives: Arc<[SourceArchive]>,
    /// The rules of the site for signatures of images.
    pub(super) signatures: SignaturePolicy,
    /// The shard of each lock that is pulled and pushed.
    pub(super) shard: Shard,
    /// The blobs that were copied from archives.
    pub(super) imports: Mutex<Vec<ImportedBlobs>>,
}

impl Client {
    pub(super) fn new(
        sessions: Arc<RegistrySessions>,
        limits: Limits,
        progress: Arc<dyn Progress>,
        archives: Vec<SourceArchive>,
        signatures: SignaturePolicy,
        shard: Shard,
    ) -> Client {
        Client {
            sessions,
            limits,
            progress,
            archives: archives.into(),
            signatures,
            shard,
            imports: Mutex::default(),
        }
    }

    /// The longest wait that a server may request.
    pub(crate) fn max_wait(&self) -> Duration {
        Duration::from_secs(self.limits.max_wait_secs)
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
