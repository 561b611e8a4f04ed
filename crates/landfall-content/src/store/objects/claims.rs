//! How a run and a `gc` that deletes learn of each other, without a lock.
//!
//! A run writes its claim, and reads the markers after that. A `gc` writes a marker that names what
//! it is about to delete, and reads the claims after that. Listings of object stores have all that
//! was written before them, so one of the two sees the other: either `gc` keeps what the run wants,
//! or the run waits until the marker is gone, and looks only then for what is there.
//!
//! A marker stays when its `gc` cannot say that the deletion is over. It counts for [`OVER`]: a
//! deletion is sent within [`SEND`] of its marker or not at all, and S3 refuses one whose signature
//! is older than 15 minutes.

use super::blob_list::{self, Contents, List};
use super::keys;
use crate::bucket::{Bucket, PutCondition};
use bytes::Bytes;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::Digest;
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};
use tokio::time::sleep;

/// The longest time between a marker and the end of its deletion, for a `gc` that goes on.
const SEND: Duration = Duration::from_mins(5);
/// How long a marker counts. More than [`SEND`] and the age at which S3 refuses a signature.
const OVER: Duration = Duration::from_mins(30);
/// The first pause before markers are looked for again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Claims `wanted`, which the lock with this fingerprint and text names. After that no `gc` deletes
/// it for as long as the claim counts, and what was being deleted is gone.
///
/// # Errors
/// When the object store does not answer, or refuses; and when a `gc` deletes some of it for longer
/// than `patience`.
pub(super) async fn claim(
    bucket: &Bucket,
    (fingerprint, lock): (&Digest, Bytes),
    wanted: &BTreeSet<Digest>,
    patience: Duration,
) -> Result<(), HttpError> {
    let key = keys::claim(fingerprint, SystemTime::now());
    bucket.put(&key, lock, &PutCondition::Always).await?;
    let (claimed, mut pause) = (Instant::now(), PAUSES.0);
    loop {
        let markers = blob_list::read_all(bucket, keys::DELETING).await?;
        let is_wanted = |list: &&List| list.contents.keys().any(|digest| wanted.contains(digest));
        let Some(last) = markers
            .iter()
            .filter(is_wanted)
            .map(|marker| marker.written)
            .max()
        else {
            return Ok(());
        };
        // the object store's clock, for both
        let written = bucket
            .look(&key)
            .await?
            .map_or(last, |claim| claim.modified);
        let waited = claimed.elapsed();
        if is_over(last, written + waited) {
            return Ok(());
        }
        if waited >= patience {
            let words = "a `landfall gc` is deleting content that this run needs, or was ended while it did; run this again \
                         when it is done, at the latest in 30 minutes";
            return Err(
                HttpError::new(ErrorKind::Invalid, words).about(bucket.shown(keys::DELETING))
            );
        }
        sleep(pause.min(patience.saturating_sub(waited))).await;
        pause = PAUSES.1.min(pause * 2);
    }
}

/// Whether a marker that was written then counts no more.
pub(super) fn is_over(written: SystemTime, now: SystemTime) -> bool {
    now.duration_since(written).is_ok_and(|age| age > OVER)
}

/// Content that this process is about to delete.
pub(super) struct Marker<'a> {
    bucket: &'a Bucket,
    key: String,
    since: Instant,
}

impl<'a> Marker<'a> {
    /// Tells runs that begin from now on.
    pub(super) async fn write(
        bucket: &'a Bucket,
        contents: &Contents,
    ) -> Result<Marker<'a>, HttpError> {
        let since = Instant::now();
        let (key, packed) =
            blob_list::packed(contents, |digest| keys::named_apart(keys::DELETING, digest))?;
        bucket.put(&key, packed, &PutCondition::Always).await?;
        Ok(Marker { bucket, key, since })
    }

    /// Deletes, and removes the marker. It stays where the deletion may still be under way.
    pub(super) async fn end(
        self,
        deletion: impl Future<Output = Result<(), HttpError>>,
    ) -> Result<(), HttpError> {
        let late = |_| {
            let words = "the object store takes too long to delete; run gc again";
            HttpError::new(ErrorKind::GivenUp, words).about(self.bucket.shown("blobs"))
        };
        tokio::time::timeout_at((self.since + SEND).into(), deletion)
            .await
            .map_err(late)??;
        self.remove().await
    }

    /// Removes the marker, of which nothing was deleted, or everything.
    pub(super) async fn remove(self) -> Result<(), HttpError> {
        self.bucket.delete(vec![self.key]).await
    }
}
