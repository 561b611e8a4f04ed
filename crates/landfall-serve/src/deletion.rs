//! Deletion of tags, manifests and blobs that were pushed, and the clean-up after it and after
//! uploads that broke off.

use super::response::{ApiError, Response, blocking, empty};
use super::route::Reference;
use super::state::{Kept, State};
use super::writable::WritableStore;
use axum::http::StatusCode;
use landfall_model::Digest;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// DELETE of a tag, or of a manifest by its digest.
pub(super) async fn manifest(
    state: Arc<State>,
    store: Arc<WritableStore>,
    name: String,
    reference: Reference,
) -> Result<Response, ApiError> {
    let held = state.bundles.repositories(&name, None);
    let (of_bundle, what) = match &reference {
        Reference::Tag(tag) => (
            held.iter().any(|held| !matches!(held.tag(tag), Ok(None))),
            tag.clone(),
        ),
        Reference::Digest(digest) => (
            held.iter().any(|held| held.manifest(digest).is_some()),
            digest.to_string(),
        ),
        Reference::Neither(text) => (false, text.clone()),
    };
    let at = name.clone();
    let deleted = blocking(move || match reference {
        Reference::Tag(tag) => store.delete_tag(&at, &tag),
        Reference::Digest(digest) => store.delete_manifest(&at, &digest),
        Reference::Neither(_) => Ok(false),
    });
    let deleted = deleted.await?.map_err(ApiError::disk)?;
    match (deleted, of_bundle) {
        (true, _) => {
            state.to_sweep.store(true, Ordering::Release);
            Ok(empty(StatusCode::ACCEPTED))
        }
        (false, true) => Err(ApiError::denied(format!(
            "{name} has {what} from a bundle; that is not deleted"
        ))),
        (false, false) => Err(ApiError::not_found(
            "MANIFEST_UNKNOWN",
            format!("{name} has no {what} that was pushed"),
        )),
    }
}

/// DELETE of a blob.
pub(super) async fn blob(
    state: Arc<State>,
    store: Arc<WritableStore>,
    digest: Digest,
) -> Result<Response, ApiError> {
    let removed = digest.clone();
    if blocking(move || store.delete_blob(&removed)).await?? {
        state.known.forget(&digest);
        return Ok(empty(StatusCode::ACCEPTED));
    }
    Err(ApiError::not_found(
        "BLOB_UNKNOWN",
        format!("{digest} was not pushed here"),
    ))
}

/// Removes uploads that broke off, and after a deletion the content that nothing names; as long as
/// the server runs.
pub(super) async fn clean_up(kept: Arc<Kept>) {
    let Some(store) = kept.writable.clone() else {
        return std::future::pending().await;
    };
    let age = kept.limits.upload_expiry;
    let step = (age / 4).clamp(Duration::from_millis(100), Duration::from_mins(1));
    loop {
        tokio::time::sleep(step).await;
        kept.uploads.reap(age);
        if kept.to_sweep.swap(false, Ordering::AcqRel) {
            let (kept, store) = (kept.clone(), store.clone());
            let _ = blocking(move || sweep(&kept, &store)).await;
        }
    }
}

/// Removes what nothing names. What a push may count on is removed later.
pub(super) fn sweep(kept: &Kept, store: &WritableStore) {
    match store.sweep(kept.limits.upload_expiry) {
        Ok(swept) => {
            swept
                .removed
                .iter()
                .for_each(|digest| kept.known.forget(digest));
            if swept.later {
                kept.to_sweep.store(true, Ordering::Release);
            }
        }
        Err(error) => kept.notes.note(&format!(
            "content that nothing names is not removed: {error}"
        )),
    }
}
