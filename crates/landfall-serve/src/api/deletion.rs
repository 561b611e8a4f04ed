//! Deletion of pushed tags, manifests and blobs, and the removal of unreferenced blobs and
//! abandoned uploads.

use crate::response::{RequestError, ServerResponse, blocking, empty_response};
use crate::route::ManifestReference;
use crate::state::{ServerContext, ServerState};
use crate::writable::{SweepResult, WritableStore};
use http::StatusCode;
use landfall_model::Digest;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Handles DELETE of a tag, or of a manifest by its digest.
pub(crate) async fn delete_manifest(
    state: Arc<ServerState>,
    store: Arc<WritableStore>,
    name: String,
    reference: ManifestReference,
) -> Result<ServerResponse, RequestError> {
    let repositories = state.bundles.repositories(&name, None);
    let (is_in_bundle, what) = match &reference {
        ManifestReference::Tag(tag) => (
            repositories
                .iter()
                .any(|repository| repository.has_tag(tag)),
            tag.clone(),
        ),
        ManifestReference::Digest(digest) => (
            repositories
                .iter()
                .any(|repository| repository.manifest(digest).is_some()),
            digest.to_string(),
        ),
        ManifestReference::Invalid(text) => (false, text.clone()),
    };
    let repository = name.clone();
    // a push that is older than the expiry of uploads is abandoned
    let age = state.limits.upload_expiry;
    let deleted = blocking(move || match reference {
        ManifestReference::Tag(tag) => store.delete_tag(&repository, &tag),
        ManifestReference::Digest(digest) => store.delete_manifest(&repository, &digest, age),
        ManifestReference::Invalid(_) => Ok(false),
    });
    let deleted = deleted.await?;
    if !matches!(deleted, Ok(false)) {
        // the blobs stay for now: other manifests may name them, and finding out takes time; a
        // failed deletion may have removed some manifests
        state.needs_sweep.store(true, Ordering::Release);
    }
    if deleted.map_err(RequestError::disk)? {
        return Ok(empty_response(StatusCode::ACCEPTED));
    }
    if is_in_bundle {
        return Err(RequestError::denied(format!(
            "{what} of {name} is part of a bundle and cannot be deleted"
        )));
    }
    Err(RequestError::not_found(
        "MANIFEST_UNKNOWN",
        format!("{what} was not pushed to {name}"),
    ))
}

/// Handles DELETE of a blob.
pub(crate) async fn delete_blob(
    state: Arc<ServerState>,
    store: Arc<WritableStore>,
    digest: Digest,
) -> Result<ServerResponse, RequestError> {
    let blob = digest.clone();
    if blocking(move || store.delete_blob(&blob)).await?? {
        state.verified_blobs.forget(&digest);
        return Ok(empty_response(StatusCode::ACCEPTED));
    }
    Err(RequestError::not_found(
        "BLOB_UNKNOWN",
        format!("{digest} was not pushed to this server"),
    ))
}

/// Removes abandoned uploads at regular intervals and, after a deletion, the blobs that no manifest
/// names. Never returns.
pub(crate) async fn clean_up(context: Arc<ServerContext>) {
    let Some(store) = context.writable.clone() else {
        // nothing to clean up: never returns; the caller also waits for the end of the server
        return std::future::pending().await;
    };
    let age = context.limits.upload_expiry;
    // often enough that an upload does not stay much longer than its expiry
    let interval = (age / 4).clamp(Duration::from_millis(100), Duration::from_mins(1));
    let mut failures = 0;
    let mut intervals_to_wait = 0_u32;
    loop {
        tokio::time::sleep(interval).await;
        context.uploads.remove_expired(age);
        if intervals_to_wait > 0 {
            intervals_to_wait -= 1;
        } else if context.needs_sweep.swap(false, Ordering::AcqRel) {
            let context = context.clone();
            let store = store.clone();
            let is_done = blocking(move || sweep(&context, &store)).await;
            // a lasting error is reported less and less often
            failures = if is_done.unwrap_or(false) {
                0
            } else {
                MAX_FAILURES.min(failures + 1)
            };
            intervals_to_wait = (1 << failures) - 1;
        }
    }
}

/// The number of failures after which the wait before the next sweep no longer doubles. It is 63
/// intervals then, at most about an hour.
const MAX_FAILURES: u32 = 6;

/// Removes the blobs that no manifest names. Blobs that a push in progress may rely on are kept
/// until a later sweep. Returns whether the sweep succeeded.
pub(super) fn sweep(context: &ServerContext, store: &WritableStore) -> bool {
    // a push that is older than the expiry of uploads is abandoned, so nothing relies on its blobs
    let result = store.sweep(context.limits.upload_expiry);
    if is_incomplete(&result) {
        context.needs_sweep.store(true, Ordering::Release);
    }
    match result {
        Ok(result) => {
            for digest in &result.removed {
                context.verified_blobs.forget(digest);
            }
            true
        }
        Err(error) => {
            let note = format!("cannot remove unreferenced blobs: {error}");
            context.progress.note(&note);
            false
        }
    }
}

/// Whether a sweep may have left unreferenced blobs, so that another one is needed.
fn is_incomplete(result: &io::Result<SweepResult>) -> bool {
    // blobs that this sweep kept may be unreferenced, so a later sweep must check them again
    !matches!(result, Ok(result) if !result.has_kept_recent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_repeated_if_it_failed_or_kept_blobs() {
        let kept = SweepResult {
            has_kept_recent: true,
            ..SweepResult::default()
        };
        assert!(!is_incomplete(&Ok(SweepResult::default())));
        assert!(is_incomplete(&Ok(kept)));
        assert!(is_incomplete(&Err(io::Error::other("bad sector"))));
    }
}
