//! A side of a comparison: a lock, a bundle or a receipt.

use crate::cli::shared::opened_file::OpenedFile;
use crate::cli::shared::package_changes::add_changelogs;
use crate::cli::shared::store_location::StoreLocation;
use crate::cli::shared::{CliError, Context};
use crate::lock::{DiffSide, LockChange};
use crate::push::Receipt;
use landfall_bundle::Bundle;
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use std::path::Path;

/// One side of a comparison.
pub(crate) enum ComparedSide {
    /// A lock file, or the lock of a bundle without the items that the bundle lacks.
    Lock {
        lock: Box<Lock>,
        /// The fingerprint of the complete lock.
        fingerprint: Digest,
        /// The bundle that contains the lock; `None` for a lock file.
        bundle: Option<Bundle>,
    },
    /// The content of a registry after a push.
    Receipt(Receipt),
}

impl ComparedSide {
    /// Opens a lock, bundle or receipt.
    pub(crate) fn open(context: &Context, path: &Path) -> Result<ComparedSide, CliError> {
        Ok(match OpenedFile::open(context, path)? {
            OpenedFile::Bundle(bundle) => ComparedSide::bundle(&bundle)?,
            OpenedFile::Lock(lock) => ComparedSide::Lock {
                fingerprint: lock.fingerprint(),
                lock: lock.into(),
                bundle: None,
            },
            OpenedFile::Receipt(receipt) => ComparedSide::Receipt(receipt),
        })
    }

    /// One side from an open bundle, whose signatures the caller has checked.
    pub(crate) fn bundle(bundle: &Bundle) -> Result<ComparedSide, CliError> {
        Ok(ComparedSide::Lock {
            lock: bundle.available_lock()?.into(),
            fingerprint: bundle.fingerprint().clone(),
            bundle: Some(bundle.clone()),
        })
    }

    /// Adds changelogs of packages to `changes`, if the packages are in the bundle or, for a lock,
    /// in the store on disk.
    pub(super) fn add_changelogs(
        &self,
        context: &Context,
        changes: &mut [LockChange],
    ) -> Result<(), CliError> {
        let ComparedSide::Lock { lock, bundle, .. } = self else {
            return Ok(());
        };
        match (bundle, context.store_location()?) {
            (Some(bundle), _) => add_changelogs(context, changes, lock, bundle),
            // Not from an object store: each package would be a download.
            (None, StoreLocation::Folder(_)) if context.has_store() => {
                add_changelogs(context, changes, lock, &*context.served_store()?);
            }
            _ => {}
        }
        Ok(())
    }

    /// The names and digests to compare.
    pub(super) fn side(&self) -> DiffSide<'_> {
        match self {
            ComparedSide::Lock { lock, .. } => DiffSide::lock(lock),
            // A trimmed index has another digest at the registry, so the locked digest is compared.
            ComparedSide::Receipt(receipt) => DiffSide::named(receipt.items.iter().map(|item| {
                (
                    &*item.name,
                    item.trimmed_from.as_ref().unwrap_or(&item.digest),
                )
            })),
        }
    }

    /// The fingerprint of the complete lock.
    pub(super) fn fingerprint(&self) -> &Digest {
        match self {
            ComparedSide::Lock { fingerprint, .. } => fingerprint,
            ComparedSide::Receipt(receipt) => &receipt.lock,
        }
    }

    /// The lock; a receipt has none.
    pub(super) fn lock(&self) -> Option<&Lock> {
        match self {
            ComparedSide::Lock { lock, .. } => Some(lock),
            ComparedSide::Receipt(_) => None,
        }
    }

    /// `lock` or `receipt`.
    pub(super) fn word(&self) -> &'static str {
        match self {
            ComparedSide::Lock { .. } => "lock",
            ComparedSide::Receipt(_) => "receipt",
        }
    }
}
