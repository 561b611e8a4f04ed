//! The quota of the folder for pushes. An upload reserves bytes as they arrive, and releases them
//! unless it is kept.

use landfall_content::WriteError;
use landfall_model::Digest;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of the blobs in the folder, including uploads in progress.
pub(crate) struct FolderQuota {
    used: AtomicU64,
    /// The maximum in bytes; `None` means no limit.
    pub(crate) max: Option<u64>,
}

impl FolderQuota {
    pub(super) fn new(used: u64, max: Option<u64>) -> FolderQuota {
        FolderQuota {
            used: AtomicU64::new(used),
            max,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether `bytes` more fit at the moment.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        self.max
            .is_none_or(|max| self.used().saturating_add(bytes) <= max)
    }

    fn reserve(&self, bytes: u64) -> Result<(), WritableStoreError> {
        let max = self.max.unwrap_or(u64::MAX);
        // one atomic step: simultaneous uploads must not exceed the limit together
        let reserved = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                used.checked_add(bytes).filter(|after| *after <= max)
            });
        match reserved {
            Ok(_) => Ok(()),
            Err(used) => Err(WritableStoreError::Full { used, max }),
        }
    }

    /// Releases bytes that were removed.
    pub(super) fn release(&self, bytes: u64) {
        let _ = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                // files may have been changed by hand, so the count may be too low
                Some(used.saturating_sub(bytes))
            });
    }

    /// The error for content that does not fit.
    pub(crate) fn full_error(&self) -> WritableStoreError {
        WritableStoreError::Full {
            used: self.used(),
            max: self.max.unwrap_or(u64::MAX),
        }
    }
}

/// The bytes that an upload has reserved. Dropping it releases them.
pub(super) struct QuotaShare {
    quota: Arc<FolderQuota>,
    bytes: u64,
}

impl QuotaShare {
    /// A share with no bytes reserved.
    pub(super) fn new(quota: Arc<FolderQuota>) -> QuotaShare {
        QuotaShare { quota, bytes: 0 }
    }

    /// Reserves `bytes` more, or fails if they exceed the quota.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), WritableStoreError> {
        self.quota.reserve(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Releases `bytes` of the share.
    pub(super) fn shrink(&mut self, bytes: u64) {
        self.quota.release(bytes);
        self.bytes -= bytes;
    }

    /// Keeps the reserved bytes in place of `replaced` bytes that were there before.
    pub(super) fn keep(mut self, replaced: u64) {
        self.bytes = 0;
        self.quota.release(replaced);
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        // also when a client disconnects: its upload is dropped
        self.quota.release(self.bytes);
    }
}

/// Why content cannot be stored in the folder for pushes, or cannot be removed from it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WritableStoreError {
    #[error("the content has the digest {found}, not {expected}")]
    WrongDigest {
        found: Digest,
        /// The digest that the client named.
        expected: Digest,
    },
    #[error(
        "the folder for pushes is full: it contains {used} of {max} bytes (--max-bytes); delete \
         content that is no longer needed"
    )]
    Full { used: u64, max: u64 },
    #[error(
        "{digest} is in use by the manifest {manifest} of {repository}; delete the manifest first"
    )]
    InUse {
        digest: Digest,
        manifest: Digest,
        repository: String,
    },
    #[error("cannot use the folder for pushes: {0}")]
    Disk(#[from] io::Error),
}

impl From<WriteError> for WritableStoreError {
    fn from(error: WriteError) -> WritableStoreError {
        WritableStoreError::Disk(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_over_the_quota_are_refused_and_unused_bytes_are_released() {
        let quota = Arc::new(FolderQuota::new(10, Some(100)));
        let mut share = QuotaShare::new(quota.clone());
        share.grow(80).unwrap();
        assert!(matches!(
            share.grow(11),
            Err(WritableStoreError::Full { used: 90, max: 100 })
        ));
        assert!(quota.fits(10) && !quota.fits(11));
        drop(share);
        assert_eq!(quota.used(), 10);
        let mut share = QuotaShare::new(quota.clone());
        share.grow(20).unwrap();
        share.keep(5);
        assert_eq!(quota.used(), 25);
    }
}
