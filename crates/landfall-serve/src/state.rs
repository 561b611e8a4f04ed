//! The state that all request handlers share, which of its versions answers a request, and
//! refreshes that callers share.

use crate::catalog::BundleCatalog;
use crate::connections::{ConnectionTable, RequestLimiter};
use crate::git::GitDatabases;
use crate::observe::RequestObserver;
use crate::options::{NodeGuides, OutdatedCheck, ServerInfo};
use crate::response::{BodyBuffers, RequestError};
use crate::route::{ManifestReference, Route};
use crate::sign_in::{HtpasswdUsers, SignInQueue};
use crate::upload_sessions::UploadSessions;
use crate::verified_blobs::VerifiedBlobs;
use crate::writable::WritableStore;
use http::StatusCode;
use http::header::RETRY_AFTER;
use landfall_content::{BlobChain, BlobRead, VerifiedRead};
use landfall_model::Limits;
use landfall_model::report::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;

/// The state from which requests are answered. A reload creates a new state; requests in progress
/// keep the old one.
#[derive(derive_more::Deref)]
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
    #[deref(forward)]
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

// Selects the state from which a request is answered. A request by name needs the state that
// should be served by now. A request by digest needs it only if the current state lacks the
// content.

/// The state for a request for `path`: `state`, or a newer state if that may answer differently.
pub(crate) async fn state_for(
    state: Arc<ServerState>,
    path: &str,
) -> Result<Arc<ServerState>, RequestError> {
    if is_same_in_any_state(&state, path) {
        return Ok(state);
    }
    newest_state(state).await.map_err(|why| {
        let message = format!("cannot find out what is currently served: {why}");
        RequestError::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", message)
            // the store that says what is served may be available again soon
            .with_header(RETRY_AFTER, "5")
    })
}

/// The state that should be served by now.
pub(crate) async fn newest_state(state: Arc<ServerState>) -> RefreshResult<Arc<ServerState>> {
    match &state.is_outdated {
        None => Ok(state),
        Some(_) => state.refresh.newest().await,
    }
}

/// `state`, or the result of `renew` if `state` is outdated.
pub(crate) async fn refreshed(
    state: Arc<ServerState>,
    renew: impl Fn() -> RefreshResult<Arc<ServerState>>,
) -> RefreshResult<Arc<ServerState>> {
    state.refresh.refreshes.fetch_add(1, Ordering::Relaxed);
    match &state.is_outdated {
        Some(is_outdated) if is_outdated().await? => renew(),
        _ => Ok(state),
    }
}

/// Whether a newer state would give the same answer: the request is for the API version, or for
/// content by digest that `state` has. If `state` lacks the content, a newer state may have it:
/// the client may know the digest from another server of the same store.
fn is_same_in_any_state(state: &ServerState, path: &str) -> bool {
    if !is_api_path(path) {
        return false;
    }
    match Route::parse(path) {
        Ok(Route::Version) => true,
        Ok(Route::Blob(_, digest) | Route::Manifest(_, ManifestReference::Digest(digest))) => {
            // content by digest never changes, so an older state answers it as well
            matches!(state.blobs.stat(&digest), Ok(Some(_)))
        }
        _ => false,
    }
}

/// Whether `path` belongs to the distribution API.
pub(crate) fn is_api_path(path: &str) -> bool {
    path == "/v2" || path.starts_with("/v2/")
}

// Coalesced refreshes: callers that wait for the newest value at the same time share one refresh,
// which begins after the last of their calls.

/// The newest value, or why it is unknown.
pub(crate) type RefreshResult<T> = Result<T, String>;

/// The error of a request that gets no answer because the other end was dropped.
const STOPPING: &str = "the server is about to stop";

/// Requests the newest value of a shared state.
pub(crate) struct RefreshHandle<T> {
    requests: mpsc::UnboundedSender<oneshot::Sender<RefreshResult<T>>>,
    /// The number of refreshes so far, for the metrics.
    pub(crate) refreshes: AtomicU64,
    /// The number of calls of [`RefreshHandle::newest`] that were answered with an error.
    pub(crate) failures: AtomicU64,
}

/// The requests to answer, at the other end of a [`RefreshHandle`].
pub(crate) struct RefreshRequests<T>(mpsc::UnboundedReceiver<oneshot::Sender<RefreshResult<T>>>);

impl<T: Clone> RefreshHandle<T> {
    /// A handle and the requests that it makes.
    pub(crate) fn new() -> (RefreshHandle<T>, RefreshRequests<T>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let handle = RefreshHandle {
            requests: sender,
            refreshes: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        };
        (handle, RefreshRequests(receiver))
    }

    /// The newest value as of this call.
    pub(crate) async fn newest(&self) -> RefreshResult<T> {
        let (sender, receiver) = oneshot::channel();
        self.requests.send(sender).map_err(|_| STOPPING)?;
        let newest = receiver.await.map_err(|_| STOPPING)?;
        if newest.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        newest
    }
}

impl<T: Clone> RefreshRequests<T> {
    /// Answers requests with the result of `refresh` until the handle is dropped.
    pub(crate) async fn answer(mut self, mut refresh: impl AsyncFnMut() -> RefreshResult<T>) {
        while let Some(first) = self.0.recv().await {
            let mut waiting = vec![first];
            // requests that arrive during the refresh are not included: they need a value from
            // after their call
            while let Ok(other) = self.0.try_recv() {
                waiting.push(other);
            }
            let newest = refresh().await;
            for sender in waiting {
                // the client may have disconnected meanwhile
                let _ = sender.send(newest.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::time::Duration;

    #[tokio::test]
    async fn concurrent_calls_share_one_refresh_that_begins_after_them() {
        let (handle, requests) = RefreshHandle::new();
        let refreshes = AtomicU64::new(0);
        let answering = requests.answer(async || {
            let number = refreshes.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
            if number < 2 {
                Ok(number)
            } else {
                Err("gone".to_owned())
            }
        });
        let calls = async {
            assert!(
                join_all((0..50).map(|_| handle.newest()))
                    .await
                    .iter()
                    .all(|one| *one == Ok(0))
            );
            assert_eq!(handle.newest().await, Ok(1));
            assert_eq!(handle.newest().await, Err("gone".to_owned()));
        };
        tokio::select! {
            () = answering => unreachable!("a handle still exists"),
            () = calls => {}
        }
        assert_eq!(
            (
                refreshes.load(Ordering::SeqCst),
                handle.failures.load(Ordering::SeqCst)
            ),
            (3, 1)
        );
    }
}
