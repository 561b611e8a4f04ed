//! The bundles that `landfall serve` serves: their order, content and changes.

use super::published::lock_changes;
use crate::cli::shared::bundle_with_bases::{missing_content, needs_bases, unreadable};
use crate::cli::shared::{CliError, open_bundle};
use landfall_bundle::Bundle;
use landfall_content::{BlobChain, BlobRead, VerifiedRead, missing_blobs};
use landfall_serve::{BundleChanges, ServedBundle};
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

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_content::MemoryBlobs;
    use landfall_item::lockfile::Lock;

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
