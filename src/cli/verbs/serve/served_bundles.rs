//! The bundles that `landfall serve` serves: their order, content and changes.

use crate::cli::shared::bundle_with_bases::{missing_content, needs_bases, unreadable};
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::open_bundle::{self, BundleRequirements};
use crate::cli::shared::{CliError, Context};
use crate::lock::diff;
use futures_util::FutureExt;
use landfall_bundle::Bundle;
use landfall_content::bucket::block_on;
use landfall_content::store::{OfferedBlobs, ServedStore};
use landfall_content::{BlobChain, BlobRead, VerifiedRead, missing_blobs};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use landfall_serve::{BundleChange, BundleChanges, OutdatedCheck, ServedBundle};
use std::sync::Arc;

/// A bundle as it is served. If it is a delta or contains patches, the blobs that it lacks are read
/// from `content`.
pub(super) fn served(
    bundle: &Bundle,
    given: &[Bundle],
    content: &[Arc<dyn VerifiedRead>],
) -> Result<ServedBundle, CliError> {
    let lock = bundle.available_lock()?;
    let mut blobs: Arc<dyn BlobRead> = Arc::new(bundle.clone());
    if needs_bases(bundle) || bundle.has_recipes() {
        blobs = Arc::new(BlobChain(
            std::iter::once(blobs)
                .chain(content.iter().map(|blobs| blobs.clone() as _))
                .collect(),
        ));
        let lacking = missing_blobs(&lock.entries(), &*blobs).map_err(unreadable)?;
        if !lacking.is_empty() {
            return Err(missing_content(bundle, &lacking, given));
        }
    }
    let path = bundle.path();
    Ok(ServedBundle {
        changes: None,
        registry: None,
        name: path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned(),
        digest: Some(bundle.digest().clone()),
        missing: open_bundle::missing_items(bundle),
        signatures: bundle.signature_keys(),
        lock,
        blobs,
    })
}

/// Adds to each bundle the changes since its base. If none of its bases is in `given`, adds the
/// changes since the previous bundle of the same series.
pub(super) fn add_changes(all: &mut [ServedBundle], bundles: &[Bundle], given: &[Bundle]) {
    let base_of = |one: &ServedBundle| {
        let bundle = bundles
            .iter()
            .find(|bundle| Some(bundle.digest()) == one.digest.as_ref())?;
        let base = given
            .iter()
            .find(|other| bundle.bases().iter().any(|base| other.matches_base(base)))?;
        Some((
            base.path().file_name()?.to_string_lossy().into_owned(),
            base.available_lock().ok()?,
        ))
    };
    for at in 0..all.len() {
        let before = all[..at]
            .iter()
            .rev()
            .find(|other| is_same_series(other, &all[at]));
        let older = base_of(&all[at])
            .or_else(|| before.map(|other| (other.name.clone(), other.lock.clone())));
        all[at].changes = older.map(|(since, lock)| BundleChanges {
            since,
            changes: lock_changes(&lock, &all[at].lock),
        });
    }
}

/// Whether both locks have the same name, or were delivered without a name to the same registry.
/// Other locks without a name may be unrelated.
fn is_same_series(older: &ServedBundle, newer: &ServedBundle) -> bool {
    let are_delivered = older.registry.is_some() && newer.registry.is_some();
    older.lock.name == newer.lock.name && (older.lock.name.is_some() || are_delivered)
}

/// Sorts the bundles so that each base comes before its deltas, and keeps the order otherwise.
pub(super) fn bases_first(mut bundles: Vec<Bundle>) -> Vec<Bundle> {
    for at in 0..bundles.len() {
        // Bounded, because two bundles may each name the lock of the other as a base.
        for _ in at + 1..bundles.len() {
            let Some(place) = bundles[at + 1..].iter().position(|other| {
                bundles[at]
                    .bases()
                    .iter()
                    .any(|base| other.matches_base(base))
            }) else {
                break;
            };
            bundles[at..=at + 1 + place].rotate_right(1);
        }
    }
    bundles
}

// The content that the servers of a store serve: that of the published lock, and that of the
// previous lock, which clients may still be pulling. The content of the previous lock is served
// only by digest.

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
    let served = block_on(async move { Ok(reading.served().await) })??;
    let (current, lock, before) = served.ok_or_else(|| published_store.nothing_published())?;
    let parsed = |text: String| Lock::parse(&published_store.place(), &text);
    let lock = parsed(lock)?;
    let before = before.map(parsed).transpose()?;
    let fingerprint = &current.pointer.lock;
    let place = published_store.place();
    check_expected(
        requirements,
        fingerprint,
        &format!("is published in {place}"),
    )?;
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

/// Refuses a lock that neither `--expect` nor `--lock` names. `origin` says where it is from.
pub(super) fn check_expected(
    requirements: &BundleRequirements<'_>,
    fingerprint: &Digest,
    origin: &str,
) -> Result<(), CliError> {
    let required = [
        (requirements.expect, "is not expected"),
        (requirements.lock, "is not the one of --lock"),
    ];
    for (accepted, why) in required {
        if !accepted.is_empty() && !accepted.contains(fingerprint) {
            return Err(CliError::refused(format!(
                "the lock {fingerprint} that {origin} {why}"
            )));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_content::MemoryBlobs;

    fn bundle(file: &str, name: Option<&str>) -> ServedBundle {
        ServedBundle {
            name: file.into(),
            digest: None,
            missing: Vec::new(),
            signatures: Vec::new(),
            lock: Lock {
                name: name.map(str::to_owned),
                ..Lock::default()
            },
            blobs: Arc::new(MemoryBlobs::default()),
            changes: None,
            registry: None,
        }
    }

    #[test]
    fn locks_without_a_name_are_not_compared() {
        let mut all = [
            bundle("a", None),
            bundle("b", Some("series")),
            bundle("c", None),
            bundle("d", Some("series")),
        ];
        add_changes(&mut all, &[], &[]);
        let since = all.map(|one| one.changes.map(|changes| changes.since));
        assert_eq!(since, [None, None, None, Some("b".to_owned())]);
    }
}
