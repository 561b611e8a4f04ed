//! Garbage collection of a store in an object store, while other processes may use it.
//!
//! There is no file lock, so blobs are removed in two steps, separated by a grace period that is
//! longer than any run. The first `gc` **condemns** unused blobs by writing a list of them. A run
//! that reads this list considers these blobs absent, and rewrites those that it needs. A later
//! `gc` **deletes** blobs whose grace period has ended, unless a lock or a claim names them by
//! then, or they were written again. Blobs are marked before they are deleted, see
//! [`crate::store::objects::gc`].

use super::content::{BlobList, BlobSizes};
use super::upload_record::UploadRecord;
use super::{bucket_store, content};
use crate::bucket::{Bucket, BucketObject, PutMode};
use bytes::Bytes;
use futures_util::TryStreamExt;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::Digest;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};
use tokio::time::sleep;

/// The largest claim that is read, in bytes.
const MAX_CLAIM: u64 = 1 << 30;
/// The maximum number of objects that one call deletes.
const BATCH_SIZE: usize = 1000;

/// The result of a garbage collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BucketGcReport {
    /// The blobs that were deleted, or would be in a dry run.
    pub deleted: Vec<SweptBlob>,
    /// The blobs that were condemned, or would be in a dry run. A later `gc` deletes them.
    pub condemned: Vec<SweptBlob>,
    /// The number of blobs whose grace period has not ended.
    pub waiting: usize,
    /// The number of abandoned uploads that were aborted, or would be in a dry run.
    pub uploads: usize,
    /// The number of blobs that locks and claims name.
    pub kept: usize,
    /// The size of the kept blobs in bytes.
    pub kept_bytes: u64,
    /// The number of locks with a valid claim.
    pub claims: usize,
}

/// A blob that is deleted or condemned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SweptBlob {
    /// The digest of the blob.
    pub digest: Digest,
    /// The size of the blob in bytes.
    pub bytes: u64,
}

/// A garbage collection of a store in an object store.
pub struct BucketGc<'a> {
    /// The folder of the store.
    pub bucket: &'a Bucket,
    /// The blobs that known locks name.
    pub keep: BTreeSet<Digest>,
    /// Returns the blobs that the lock in a claim names, or `None` if the claim is not a lock.
    pub names: &'a (dyn Fn(&[u8]) -> Option<Vec<Digest>> + Sync),
    /// The grace period, which must be longer than any run.
    pub grace: Duration,
    /// The present time. The difference from the clock of the object store must be much smaller
    /// than `grace`.
    pub now: SystemTime,
    /// Whether nothing is deleted or written.
    pub dry_run: bool,
}

impl BucketGc<'_> {
    /// Collects garbage. If it fails or is killed, no needed blob is lost, and the next `gc`
    /// continues.
    ///
    /// # Errors
    /// If a request to the object store fails, or a claim is not a lock.
    pub async fn run(mut self) -> Result<BucketGcReport, HttpError> {
        let mut report = BucketGcReport::default();
        // read first: a list that a run writes from now on must not be replaced
        let old_lists = content::read_all(self.bucket, bucket_store::INDEX).await?;
        let mut claimed = BTreeSet::new();
        self.keep_claimed(&mut claimed).await?;
        report.claims = claimed.len();
        let blobs: Vec<(Digest, BucketObject)> = self.blobs().await?;
        let condemned = content::read_all(self.bucket, bucket_store::CONDEMNED).await?;
        let (due, waiting): (Vec<_>, Vec<_>) = condemned
            .into_iter()
            .partition(|list| self.is_old(list.written));
        // `doomed` blobs are in a list whose grace period has ended, and were not written again
        let mut doomed = Vec::new();
        let mut listed = BlobSizes::new();
        let mut condemns = BlobSizes::new();
        for (digest, object) in blobs {
            if self.keep.contains(&digest) {
                listed.insert(digest, object.size);
                report.kept += 1;
                report.kept_bytes += object.size;
            } else if due.iter().any(|list| {
                // a run needs a blob that was written after the list
                list.contents.contains_key(&digest) && object.modified < list.written
            }) {
                doomed.push((digest, object));
            } else if waiting
                .iter()
                .any(|list| list.contents.contains_key(&digest))
            {
                report.waiting += 1;
            } else if self.is_old(object.modified) {
                condemns.insert(digest, object.size);
            } else {
                // younger than the grace period: a run that is still in progress may need it
                listed.insert(digest, object.size);
            }
        }
        report.uploads = self.abort_old_uploads().await?;
        let deleted = if self.dry_run {
            sizes_of(&doomed)
        } else {
            // first, so that a run that begins from now on considers these blobs absent
            content::write(self.bucket, bucket_store::CONDEMNED, &condemns).await?;
            if !condemns.is_empty() {
                // a run that began before this list was written may rely on some of these blobs.
                // Its claim names them, so they are added to the list of present blobs, which is
                // written next and wins because it is younger
                self.keep_claimed(&mut claimed).await?;
                for digest in &self.keep {
                    listed.extend(condemns.remove_entry(digest));
                }
            }
            let kept_list = content::write(self.bucket, bucket_store::INDEX, &listed).await?;
            let replaced = old_lists
                .into_iter()
                .map(|list| list.key)
                .filter(|key| Some(key) != kept_list.as_ref());
            // lists of present blobs are deleted before the blobs, so that no run considers a
            // deleted blob present
            self.delete(replaced.collect()).await?;
            let deleted = self.delete_doomed(doomed, &mut claimed).await?;
            // lists of condemned blobs last: a killed gc leaves them, and the next one continues
            self.delete(due.into_iter().map(|list| list.key).collect())
                .await?;
            self.delete_old_markers().await?;
            deleted
        };
        report.deleted = swept_blobs(deleted);
        report.condemned = swept_blobs(condemns);
        Ok(report)
    }

    /// Deletes the doomed blobs that no run has claimed meanwhile. Returns the deleted blobs.
    async fn delete_doomed(
        &mut self,
        doomed: Vec<(Digest, BucketObject)>,
        claimed: &mut BTreeSet<String>,
    ) -> Result<BlobSizes, HttpError> {
        let mut deleted = BlobSizes::new();
        for batch in doomed.chunks(BATCH_SIZE) {
            let marker = DeletionMarker::write(self.bucket, &sizes_of(batch)).await?;
            // read after the marker: a run either finds the marker, or its claim is found here
            if let Err(error) = self.keep_claimed(claimed).await {
                marker.remove().await?;
                return Err(error);
            }
            let unclaimed = batch
                .iter()
                .filter(|(digest, _)| !self.keep.contains(digest));
            let (batch, objects): (Vec<_>, Vec<_>) = unclaimed
                .map(|(digest, object)| ((digest.clone(), object.size), object.clone()))
                .unzip();
            marker.end(self.bucket.delete_listed(&objects)).await?;
            deleted.extend(batch);
        }
        Ok(deleted)
    }

    /// Whether `moment` is longer ago than the grace period.
    fn is_old(&self, moment: SystemTime) -> bool {
        self.now
            .duration_since(moment)
            .is_ok_and(|age| age > self.grace)
    }

    /// Adds the blobs of claims to `keep`. Locks in `claimed` are not read again; locks that are
    /// read are added to `claimed`. Deletes claims older than the grace period, except in a dry
    /// run.
    async fn keep_claimed(&mut self, claimed: &mut BTreeSet<String>) -> Result<(), HttpError> {
        let mut over = Vec::new();
        let objects: Vec<BucketObject> =
            self.bucket.list(bucket_store::CLAIMS).try_collect().await?;
        for object in objects {
            let fingerprint = bucket_store::hex_of(&object.key);
            if self.is_old(object.modified) {
                over.extend(fingerprint.is_some().then(|| object.key.clone()));
                continue;
            }
            let fingerprint = fingerprint.unwrap_or(&object.key).to_owned();
            // a fingerprint identifies one text, so a lock that was read need not be read again
            if claimed.contains(&fingerprint) {
                continue;
            }
            let Some((bytes, _)) = self.bucket.get(&object.key, MAX_CLAIM).await? else {
                continue;
            };
            // a claim that cannot be read may need any blob
            let names = (self.names)(&bytes).ok_or_else(|| {
                let words = "this claim is not a lock that this release can read, so nothing is \
                             removed; use the newest landfall, or delete the claim when its run \
                             has ended";
                HttpError::new(ErrorKind::Local, words).about(self.bucket.url(&object.key))
            })?;
            self.keep.extend(names);
            claimed.insert(fingerprint);
        }
        if !self.dry_run {
            self.delete(over).await?;
        }
        Ok(())
    }

    /// Returns all blobs in the store.
    async fn blobs(&self) -> Result<Vec<(Digest, BucketObject)>, HttpError> {
        self.bucket
            .list("blobs")
            .try_filter_map(|object| {
                let content = bucket_store::content_of("blobs", &object.key);
                std::future::ready(Ok(content.map(|digest| (digest, object))))
            })
            .try_collect()
            .await
    }

    /// Aborts uploads that no run has continued within the grace period; in a dry run, only counts
    /// them. Returns their number.
    async fn abort_old_uploads(&self) -> Result<usize, HttpError> {
        let old: Vec<BucketObject> = self
            .bucket
            .list(bucket_store::UPLOADS)
            .try_filter(|object| {
                let is_record =
                    bucket_store::content_of(bucket_store::UPLOADS, &object.key).is_some();
                std::future::ready(is_record && self.is_old(object.modified))
            })
            .try_collect()
            .await?;
        if !self.dry_run {
            for object in &old {
                UploadRecord::abort(self.bucket, &object.key).await?;
            }
        }
        Ok(old.len())
    }

    /// Deletes markers that have expired, left by a `gc` that was killed.
    async fn delete_old_markers(&self) -> Result<(), HttpError> {
        let markers = content::list_all(self.bucket, bucket_store::DELETING).await?;
        let old = markers
            .into_iter()
            .filter(|marker| is_expired(marker.modified, self.now));
        self.delete(old.map(|marker| marker.key).collect()).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), HttpError> {
        for batch in keys.chunks(BATCH_SIZE) {
            self.bucket.delete(batch.to_vec()).await?;
        }
        Ok(())
    }
}

fn swept_blobs(blobs: BlobSizes) -> Vec<SweptBlob> {
    blobs
        .into_iter()
        .map(|(digest, bytes)| SweptBlob { digest, bytes })
        .collect()
}

fn sizes_of(blobs: &[(Digest, BucketObject)]) -> BlobSizes {
    blobs
        .iter()
        .map(|(digest, object)| (digest.clone(), object.size))
        .collect()
}

// How a run and a `gc` that deletes blobs notice each other without a file lock.

/// The time limit for a deletion, from the writing of its marker to the response.
const DELETION_TIMEOUT: Duration = Duration::from_mins(5);
/// How long a marker is valid: longer than [`DELETION_TIMEOUT`] plus the age at which S3 refuses a
/// signature.
const MARKER_LIFETIME: Duration = Duration::from_mins(30);
/// The first pause before markers are read again. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two reads of the markers.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Claims the `wanted` blobs, which the lock with this fingerprint and text names. Afterwards no
/// `gc` deletes them while the claim is valid, and deletions in progress have ended. Fails if a
/// `gc` is still deleting some of them after `gc_wait`.
pub(super) async fn claim(
    bucket: &Bucket,
    fingerprint: &Digest,
    lock: Bytes,
    wanted: &BTreeSet<Digest>,
    gc_wait: Duration,
) -> Result<(), HttpError> {
    let key = bucket_store::claim(fingerprint, SystemTime::now());
    // the protocol depends on this order: first the claim, then the markers
    bucket.put(&key, lock, &PutMode::Overwrite).await?;
    // measured by the monotonic clock, because the clock of the system may be set meanwhile
    let claimed = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let markers = content::read_all(bucket, bucket_store::DELETING).await?;
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
            return Err(
                HttpError::new(ErrorKind::Invalid, words).about(bucket.url(bucket_store::DELETING))
            );
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
        let (key, compressed) = content::compress(blobs, |digest| {
            bucket_store::named_apart(bucket_store::DELETING, digest)
        })?;
        bucket.put(&key, compressed, &PutMode::Overwrite).await?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlobStore;
    use crate::store::{BucketStore, StoreTimeouts};
    use landfall_model::Descriptor;

    const HOUR: Duration = Duration::from_hours(1);

    fn blob(text: &str) -> Descriptor {
        Descriptor {
            digest: Digest::sha256(text.as_bytes()),
            size: text.len() as u64,
            media_type: "x/y".into(),
        }
    }

    /// Collects garbage as if this many hours had passed.
    async fn sweep(
        bucket: &Bucket,
        keep: &[&str],
        hours: u32,
        dry_run: bool,
    ) -> (Vec<u64>, Vec<u64>) {
        let sweep = BucketGc {
            bucket,
            keep: keep.iter().map(|text| blob(text).digest).collect(),
            names: &|claim| Some(vec![Digest::sha256(claim)]),
            grace: 10 * HOUR,
            now: SystemTime::now() + hours * HOUR,
            dry_run,
        };
        let BucketGcReport {
            deleted, condemned, ..
        } = sweep.run().await.unwrap();
        let sizes = |blobs: Vec<SweptBlob>| blobs.iter().map(|blob| blob.bytes).collect();
        (sizes(deleted), sizes(condemned))
    }

    async fn store(bucket: &Bucket, texts: &[&'static str]) -> BucketStore {
        let store = BucketStore::open(bucket.clone(), StoreTimeouts::new(HOUR))
            .await
            .unwrap();
        for text in texts {
            store.put(&blob(text), Bytes::from(*text)).await.unwrap();
        }
        store.record_complete(&mut std::iter::empty()).unwrap();
        store
    }

    fn has(store: &BucketStore, text: &str) -> bool {
        store.has_blob(&blob(text), false).unwrap()
    }

    #[tokio::test]
    async fn gc_removes_in_two_steps_and_keeps_needed_and_new_content() {
        let bucket = Bucket::in_memory();
        store(&bucket, &["a", "bb", "ccc", "dddd"]).await;
        assert_eq!(
            sweep(&bucket, &["a"], 1, false).await,
            (vec![], vec![]),
            "new content is kept"
        );
        assert_eq!(sweep(&bucket, &["a"], 11, true).await.1.len(), 3);
        let (deleted, condemned) = sweep(&bucket, &["a"], 11, false).await;
        assert_eq!((deleted.len(), condemned.len()), (0, 3));
        // only the clock of `gc` was moved: in the store, the lists were written just now
        let late = store(&bucket, &[]).await;
        assert!(
            has(&late, "a") && !has(&late, "bb"),
            "a condemned blob counts as absent"
        );
        assert_eq!(
            sweep(&bucket, &["a"], 2, false).await,
            (vec![], vec![]),
            "its grace period has not ended"
        );
        // of the condemned blobs, one was written again, one is needed by now, and one is neither
        store(&bucket, &["bb"]).await;
        assert_eq!(
            sweep(&bucket, &["a", "ccc"], 11, true).await,
            (vec![4], vec![2])
        );
        assert_eq!(
            sweep(&bucket, &["a", "ccc"], 11, false).await,
            (vec![4], vec![2])
        );
        let keys = ["bb", "dddd"].map(|text| bucket_store::blob(&blob(text).digest));
        assert!(
            bucket.head(&keys[0]).await.unwrap().is_some()
                && bucket.head(&keys[1]).await.unwrap().is_none()
        );
        let after = store(&bucket, &[]).await;
        assert_eq!(
            ["a", "bb", "ccc"].map(|text| has(&after, text)),
            [true, false, true]
        );
    }

    #[tokio::test]
    async fn claims_protect_content_and_an_invalid_claim_stops_the_sweep() {
        let bucket = Bucket::in_memory();
        let at = store(&bucket, &["a", "bb"]).await;
        BlobStore::claim(&at, &Digest::sha256(b"lock"), "bb", BTreeSet::new()).unwrap();
        let refused = BucketGc {
            bucket: &bucket,
            keep: BTreeSet::new(),
            names: &|_| None,
            grace: HOUR,
            now: SystemTime::now(),
            dry_run: true,
        };
        assert!(
            refused
                .run()
                .await
                .unwrap_err()
                .to_string()
                .contains("claims/")
        );
        let kept = BucketGc {
            bucket: &bucket,
            keep: BTreeSet::new(),
            names: &|claim| Some(vec![Digest::sha256(claim)]),
            grace: HOUR,
            now: SystemTime::now(),
            dry_run: true,
        };
        let report = kept.run().await.unwrap();
        assert_eq!((report.kept, report.kept_bytes, report.claims), (1, 2, 1));
    }
}
