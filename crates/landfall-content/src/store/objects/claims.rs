//! How a run and a `gc` that deletes blobs notice each other without a file lock.
//!
//! A run writes its claim and then reads the markers. A `gc` writes a marker that lists the blobs
//! it is about to delete, and then reads the claims. Listings of object stores are consistent, so
//! at least one of the two sees the other: either `gc` keeps the blobs that the run needs, or the
//! run waits until the marker is gone, and only then looks for present blobs.
//!
//! If a `gc` does not know whether its deletion has ended, the marker stays and is valid for
//! [`MARKER_LIFETIME`]: a deletion is sent within [`DELETION_TIMEOUT`] of its marker or not at all,
//! and S3 refuses a request whose signature is older than 15 minutes.

use super::blob_list::{self, BlobList, BlobSizes};
use super::keys;
use crate::bucket::{Bucket, PutCondition};
use bytes::Bytes;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::Digest;
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};
use tokio::time::sleep;

/// The time limit for a deletion, from the writing of its marker to the response.
const DELETION_TIMEOUT: Duration = Duration::from_mins(5);
/// How long a marker is valid: longer than [`DELETION_TIMEOUT`] plus the age at which S3 refuses a
/// signature.
const MARKER_LIFETIME: Duration = Duration::from_mins(30);
/// The first pause before markers are read again. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two reads of the markers.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// A lock that is claimed: its fingerprint and text.
pub(super) struct ClaimedLock<'a> {
    pub fingerprint: &'a Digest,
    pub text: Bytes,
}

/// Claims the `wanted` blobs, which the lock names. Afterwards no `gc` deletes them while the claim
/// is valid, and deletions in progress have ended. Fails if a `gc` is still deleting some of them
/// after `gc_wait`.
pub(super) async fn claim(
    bucket: &Bucket,
    lock: ClaimedLock<'_>,
    wanted: &BTreeSet<Digest>,
    gc_wait: Duration,
) -> Result<(), HttpError> {
    let key = keys::claim(lock.fingerprint, SystemTime::now());
    // the protocol depends on this order: first the claim, then the markers
    bucket.put(&key, lock.text, &PutCondition::Always).await?;
    // measured by the monotonic clock, because the clock of the system may be set meanwhile
    let claimed = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let markers = blob_list::read_all(bucket, keys::DELETING).await?;
        let is_wanted =
            |list: &&BlobList| list.contents.keys().any(|digest| wanted.contains(digest));
        let Some(last) = markers
            .iter()
            .filter(is_wanted)
            .map(|marker| marker.written)
            .max()
        else {
            return Ok(());
        };
        // both times are by the clock of the object store, which may differ from ours
        let written = bucket
            .head(&key)
            .await?
            .map_or(last, |claim| claim.modified);
        let waited = claimed.elapsed();
        if is_expired(last, written + waited) {
            return Ok(());
        }
        if waited >= gc_wait {
            let words = "a `landfall gc` is deleting blobs that this run needs, or was killed while \
                         deleting; run this again when it has ended, at the latest in 30 minutes";
            return Err(HttpError::new(ErrorKind::Invalid, words).about(bucket.url(keys::DELETING)));
        }
        sleep(pause.min(gc_wait.saturating_sub(waited))).await;
        pause = MAX_PAUSE.min(pause * 2);
    }
}

/// Whether a marker from the time `written` has expired.
pub(super) fn is_expired(written: SystemTime, now: SystemTime) -> bool {
    now.duration_since(written)
        .is_ok_and(|age| age > MARKER_LIFETIME)
}

/// A marker for blobs that this process is about to delete.
pub(super) struct DeletionMarker<'a> {
    bucket: &'a Bucket,
    key: String,
    since: Instant,
}

impl<'a> DeletionMarker<'a> {
    /// Writes the marker. Runs that begin afterwards see it.
    pub(super) async fn write(
        bucket: &'a Bucket,
        blobs: &BlobSizes,
    ) -> Result<DeletionMarker<'a>, HttpError> {
        // before the request: the marker counts from the moment when it may become visible
        let since = Instant::now();
        let (key, compressed) =
            blob_list::compress(blobs, |digest| keys::named_apart(keys::DELETING, digest))?;
        bucket.put(&key, compressed, &PutCondition::Always).await?;
        Ok(DeletionMarker { bucket, key, since })
    }

    /// Runs the deletion and removes the marker, unless the deletion may still be in progress.
    pub(super) async fn end(
        self,
        deletion: impl Future<Output = Result<(), HttpError>>,
    ) -> Result<(), HttpError> {
        // after a timeout the marker stays, because the object store may still be deleting
        tokio::time::timeout_at((self.since + DELETION_TIMEOUT).into(), deletion)
            .await
            .map_err(|_| {
                let words = "the object store took too long to delete blobs; run gc again";
                HttpError::new(ErrorKind::GivenUp, words).about(self.bucket.url("blobs"))
            })??;
        self.remove().await
    }

    /// Removes the marker. No deletion of the blobs that it lists may be in progress.
    pub(super) async fn remove(self) -> Result<(), HttpError> {
        self.bucket.delete(vec![self.key]).await
    }
}
