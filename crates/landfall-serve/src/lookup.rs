//! From which state a request is answered: where names are looked up, from the one that should be
//! served by now.

use super::freshness::Fresh;
use super::response::ApiError;
use super::route::{Reference, Route};
use super::state::State;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use landfall_content::BlobRead;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The state from which a request for `path` is answered: `state`, or a newer one where names are
/// looked up.
///
/// # Errors
/// When nobody knows what should be served.
pub(super) async fn state_for(state: Arc<State>, path: &str) -> Result<Arc<State>, ApiError> {
    if is_settled(&state, path) {
        return Ok(state);
    }
    fresh(state).await.map_err(|why| {
        let message = format!("nobody knows what is to be served: {why}");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", message)
            .with(RETRY_AFTER, "5")
    })
}

/// The state that should be served by now.
///
/// # Errors
/// When nobody knows it.
pub(super) async fn fresh(state: Arc<State>) -> Fresh<Arc<State>> {
    match &state.is_outdated {
        None => Ok(state),
        Some(_) => state.freshness.newest().await,
    }
}

/// `state`, or what `renew` makes where that is outdated.
///
/// # Errors
/// When nobody knows whether it is, or it cannot be renewed.
pub(super) async fn renewed(
    state: Arc<State>,
    renew: impl Fn() -> Fresh<Arc<State>>,
) -> Fresh<Arc<State>> {
    state.freshness.asked.fetch_add(1, Ordering::Relaxed);
    match &state.is_outdated {
        Some(is_outdated) if is_outdated().await? => renew(),
        _ => Ok(state),
    }
}

/// Whether no newer state would answer otherwise: the request names content by its digest that is
/// here, or the API itself. Another server of the same store may have named content that is not
/// here yet.
fn is_settled(state: &State, path: &str) -> bool {
    let is_api = path == "/v2" || path.starts_with("/v2/");
    match is_api.then(|| Route::parse(path)) {
        Some(Ok(Route::Version)) => true,
        Some(Ok(Route::Blob(_, digest) | Route::Manifest(_, Reference::Digest(digest)))) => {
            matches!(state.blobs.stat(&digest), Ok(Some(_)))
        }
        _ => false,
    }
}
