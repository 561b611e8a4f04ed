//! Selects the state from which a request is answered. A request by name needs the state that
//! should be served by now. A request by digest needs it only if the current state lacks the
//! content.

use crate::refresh::RefreshResult;
use crate::response::RequestError;
use crate::route::{ManifestReference, Route};
use crate::state::ServerState;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use landfall_content::BlobRead;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
