//! The content that the servers of a store serve: that of the published lock, and that of the
//! previous lock, which clients may still be pulling. The content of the previous lock is served
//! only by digest.

use crate::cli::shared::image_signatures::ImageSignatures;
use crate::cli::shared::open_bundle::BundleRequirements;
use crate::cli::shared::{CliError, Context};
use crate::client::ClientError;
use crate::lock::diff;
use futures_util::FutureExt;
use landfall_content::VerifiedRead;
use landfall_content::bucket::block_on;
use landfall_content::store::{OfferedBlobs, ServedStore, ServedStoreError};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use landfall_serve::{BundleChange, BundleChanges, OutdatedCheck, ServedBundle};
use std::sync::Arc;

/// The bundles that are served, and their content.
pub(crate) struct ServeSources {
    /// The bundles that are served by name; if two contain the same name, the later one wins.
    pub(crate) all: Vec<ServedBundle>,
    pub(crate) content: Vec<Arc<dyn VerifiedRead>>,
    /// Content that is served only by digest.
    pub(crate) earlier: Vec<ServedBundle>,
    /// Checks whether another lock was published meanwhile.
    pub(crate) is_outdated: Option<OutdatedCheck>,
}

/// Reads the published lock from the store, and checks it against `requirements`.
pub(crate) fn published(
    context: &Context,
    published_store: &ServedStore,
    requirements: &BundleRequirements<'_>,
) -> Result<ServeSources, CliError> {
    let reading = published_store.clone();
    let served =
        block_on(async move { Ok(reading.served().await) }).map_err(ClientError::from)??;
    let (current, lock, before) = served.ok_or_else(|| ServedStoreError::Nothing {
        place: published_store.place(),
    })?;
    let parsed = |text: String| Lock::parse(&published_store.place(), &text);
    let lock = parsed(lock)?;
    let before = before.map(parsed).transpose()?;
    let fingerprint = &current.pointer.lock;
    let place = published_store.place();
    let required = [
        (requirements.expect, "is not expected"),
        (requirements.lock, "is not the one of --lock"),
    ];
    for (accepted, why) in required {
        if !accepted.is_empty() && !accepted.contains(fingerprint) {
            return Err(CliError::refused(format!(
                "the lock {fingerprint} that is published in {place} {why}"
            )));
        }
    }
    // Only content that a published lock names is served, not everything in the store.
    let content_of = |locks: &[&Lock]| {
        let entries = locks.iter().flat_map(|lock| lock.each_entry());
        Arc::new(OfferedBlobs::new(published_store, entries))
    };
    let site = context.site.as_ref();
    ImageSignatures::verify(site, &lock, content_of(&[&lock]))?;
    // the previous lock may have been published before the site had these rules
    let is_accepted = |before: &Lock| {
        let refused = ImageSignatures::verify(site, before, content_of(&[before])).err();
        if let Some(error) = &refused {
            let message = &error.message;
            let note = format!("the content of the previous lock is not served: {message}");
            context.progress.note(&note);
        }
        refused.is_none()
    };
    let before = before.filter(is_accepted);
    let locks: Vec<&Lock> = std::iter::once(&lock).chain(&before).collect();
    let blobs = content_of(&locks);
    let served = |lock: Lock, fingerprint: &Digest| ServedBundle {
        name: lock.name.clone().unwrap_or_else(|| place.clone()),
        digest: Some(fingerprint.clone()),
        missing: Vec::new(),
        signatures: Vec::new(),
        lock,
        blobs: blobs.clone(),
        changes: None,
        registry: None,
    };
    let changes = before.as_ref().map(|before| BundleChanges {
        since: current
            .pointer
            .previous
            .iter()
            .map(|digest| digest.short(12))
            .collect(),
        changes: lock_changes(before, &lock),
    });
    let previous = current.pointer.previous.as_ref();
    let earlier = before
        .zip(previous)
        .map(|(lock, fingerprint)| served(lock, fingerprint))
        .into_iter()
        .collect();
    let all = vec![ServedBundle {
        changes,
        ..served(lock, fingerprint)
    }];
    let published_store = published_store.clone();
    let current = Arc::new(current);
    let is_outdated: OutdatedCheck = Arc::new(move || {
        let published_store = published_store.clone();
        let current = current.clone();
        async move {
            published_store
                .has_changed(&current)
                .await
                .map_err(|error| error.to_string())
        }
        .boxed()
    });
    Ok(ServeSources {
        all,
        content: vec![blobs],
        earlier,
        is_outdated: Some(is_outdated),
    })
}

/// The changes between two locks.
pub(crate) fn lock_changes(old: &Lock, new: &Lock) -> Vec<BundleChange> {
    let changes = diff(old, new).into_iter().map(|change| BundleChange {
        change: change.change,
        kind: change.kind,
        name: change.name,
        digests: [change.from, change.to],
    });
    changes.collect()
}
