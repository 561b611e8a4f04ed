//! Removes from a store in an object store what no lock needs any more, while others may use it.
//!
//! No lock of a file system helps here, so content goes in two steps, a grace period apart that is
//! longer than any run. The first `gc` **condemns** what is unused: a list of it is written. A run
//! that reads this list takes such content for absent, and writes it anew. A later `gc` **deletes**
//! what was condemned before the grace period, unless a lock or a claim names it by then, or it was
//! written since. What is deleted at once is marked first: see [`super::claims`].

use super::blob_list::{self, Contents};
use super::claims::{self, Marker};
use super::keys;
use super::upload_record::Record;
use crate::bucket::{Bucket, BucketObject};
use futures_util::TryStreamExt;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::Digest;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// The most that a claim may have, in bytes.
const CLAIM: u64 = 1 << 30;
/// Objects that are deleted by one call.
const BATCH: usize = 1000;

/// What a sweep found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BucketGcReport {
    /// What was deleted now, or would be.
    pub deleted: Vec<SweptBlob>,
    /// What was condemned now, or would be: a later sweep deletes it.
    pub condemned: Vec<SweptBlob>,
    /// What was condemned earlier, and waits for the end of its grace period.
    pub waiting: usize,
    /// Uploads that nobody resumed, and that were given up, or would be.
    pub uploads: usize,
    /// How many blobs locks and claims name.
    pub kept: usize,
    /// Their size in bytes.
    pub kept_bytes: u64,
    /// Locks that runs have claimed, as far as their claims count.
    pub claims: usize,
}

/// Content that is deleted or condemned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SweptBlob {
    /// Which.
    pub digest: Digest,
    /// Its size in bytes.
    pub bytes: u64,
}

/// How a sweep goes.
pub struct BucketGc<'a> {
    /// The store.
    pub bucket: &'a Bucket,
    /// What locks name.
    pub keep: BTreeSet<Digest>,
    /// What the lock of a claim names; `None` where it is no lock.
    pub names: &'a (dyn Fn(&[u8]) -> Option<Vec<Digest>> + Sync),
    /// Longer than any run.
    pub grace: Duration,
    /// The time now, by a clock that differs from the object store's by much less than `grace`.
    pub now: SystemTime,
    /// Deletes and writes nothing.
    pub dry_run: bool,
}

impl BucketGc<'_> {
    /// Sweeps.
    ///
    /// # Errors
    /// When the object store does not answer, or refuses. Nothing that is needed is gone then;
    /// another sweep goes on.
    pub async fn run(mut self) -> Result<BucketGcReport, HttpError> {
        let mut collected = BucketGcReport::default();
        let old_lists = blob_list::read_all(self.bucket, keys::INDEX).await?;
        let mut claimed = BTreeSet::new();
        self.take_claims(&mut claimed).await?;
        collected.claims = claimed.len();
        let blobs: Vec<(Digest, BucketObject)> = self.blobs().await?;
        let condemned = blob_list::read_all(self.bucket, keys::CONDEMNED).await?;
        let (due, waiting): (Vec<_>, Vec<_>) = condemned
            .into_iter()
            .partition(|list| self.is_old(list.written));
        // by the lists whose time has come, and not written anew since
        let (mut doomed, mut listed, mut condemns) = (Vec::new(), Contents::new(), Contents::new());
        for (digest, object) in blobs {
            let is_due = |list: &blob_list::List| {
                list.contents.contains_key(&digest) && object.modified < list.written
            };
            if self.keep.contains(&digest) {
                listed.insert(digest, object.size);
                collected.kept += 1;
                collected.kept_bytes += object.size;
            } else if due.iter().any(is_due) {
                doomed.push((digest, object));
            } else if waiting
                .iter()
                .any(|list| list.contents.contains_key(&digest))
            {
                collected.waiting += 1;
            } else if self.is_old(object.modified) {
                condemns.insert(digest, object.size);
            } else {
                listed.insert(digest, object.size);
            }
        }
        collected.uploads = self.end_uploads().await?;
        let deleted = if self.dry_run {
            contents(&doomed)
        } else {
            // runs that begin now know of it before anything is deleted
            blob_list::write(self.bucket, keys::CONDEMNED, &condemns).await?;
            if !condemns.is_empty() {
                // a run that began before may have been told that some of it is there: a younger
                // list tells everybody
                self.take_claims(&mut claimed).await?;
                for digest in &self.keep {
                    listed.extend(condemns.remove_entry(digest));
                }
            }
            let kept_list = blob_list::write(self.bucket, keys::INDEX, &listed).await?;
            let replaced = old_lists
                .into_iter()
                .map(|list| list.key)
                .filter(|key| Some(key) != kept_list.as_ref());
            self.delete(replaced.collect()).await?;
            let deleted = self.delete_doomed(doomed, &mut claimed).await?;
            self.delete(due.into_iter().map(|list| list.key).collect())
                .await?;
            self.delete_old_markers().await?;
            deleted
        };
        let shown = |contents: Contents| {
            contents
                .into_iter()
                .map(|(digest, bytes)| SweptBlob { digest, bytes })
                .collect()
        };
        (collected.deleted, collected.condemned) = (shown(deleted), shown(condemns));
        Ok(collected)
    }

    /// Deletes what nobody has claimed meanwhile, and returns it.
    async fn delete_doomed(
        &mut self,
        doomed: Vec<(Digest, BucketObject)>,
        claimed: &mut BTreeSet<String>,
    ) -> Result<Contents, HttpError> {
        let mut deleted = Contents::new();
        for batch in doomed.chunks(BATCH) {
            let marker = Marker::write(self.bucket, &contents(batch)).await?;
            if let Err(error) = self.take_claims(claimed).await {
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

    /// Whether the grace period after this moment is over.
    fn is_old(&self, moment: SystemTime) -> bool {
        self.now
            .duration_since(moment)
            .is_ok_and(|age| age > self.grace)
    }

    /// Keeps what runs claim, and adds their locks to `claimed`, of which none is read again.
    /// Claims whose grace period is over are deleted.
    async fn take_claims(&mut self, claimed: &mut BTreeSet<String>) -> Result<(), HttpError> {
        let mut over = Vec::new();
        let objects: Vec<BucketObject> = self.bucket.list(keys::CLAIMS).try_collect().await?;
        for object in objects {
            let fingerprint = keys::hex_of(&object.key);
            if self.is_old(object.modified) {
                over.extend(fingerprint.is_some().then(|| object.key.clone()));
                continue;
            }
            let fingerprint = fingerprint.unwrap_or(&object.key).to_owned();
            if claimed.contains(&fingerprint) {
                continue;
            }
            let Some((bytes, _)) = self.bucket.get(&object.key, CLAIM).await? else {
                continue;
            };
            let unread = || {
                let words = "it is no lock that this release reads: what its run needs is not known, and nothing is removed; use \
                             the newest landfall, or delete it when its run has ended";
                HttpError::new(ErrorKind::Local, words).about(self.bucket.shown(&object.key))
            };
            let names = (self.names)(&bytes).ok_or_else(unread)?;
            self.keep.extend(names);
            claimed.insert(fingerprint);
        }
        if !self.dry_run {
            self.delete(over).await?;
        }
        Ok(())
    }

    /// All content that is there.
    async fn blobs(&self) -> Result<Vec<(Digest, BucketObject)>, HttpError> {
        let known = |object: BucketObject| {
            let content = keys::content_of("blobs", &object.key);
            std::future::ready(Ok(content.map(|digest| (digest, object))))
        };
        self.bucket
            .list("blobs")
            .try_filter_map(known)
            .try_collect()
            .await
    }

    /// Gives up the uploads that nobody resumed. Returns how many.
    async fn end_uploads(&self) -> Result<usize, HttpError> {
        let is_old = |object: &BucketObject| {
            let is_record = keys::content_of(keys::UPLOADS, &object.key).is_some();
            std::future::ready(is_record && self.is_old(object.modified))
        };
        let old: Vec<BucketObject> = self
            .bucket
            .list(keys::UPLOADS)
            .try_filter(is_old)
            .try_collect()
            .await?;
        if !self.dry_run {
            for object in &old {
                Record::end(self.bucket, &object.key).await?;
            }
        }
        Ok(old.len())
    }

    /// Deletes markers that no run waits for any more.
    async fn delete_old_markers(&self) -> Result<(), HttpError> {
        let markers = blob_list::list_all(self.bucket, keys::DELETING).await?;
        let old = markers
            .into_iter()
            .filter(|marker| claims::is_over(marker.modified, self.now));
        self.delete(old.map(|marker| marker.key).collect()).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), HttpError> {
        for batch in keys.chunks(BATCH) {
            self.bucket.delete(batch.to_vec()).await?;
        }
        Ok(())
    }
}

fn contents(blobs: &[(Digest, BucketObject)]) -> Contents {
    blobs
        .iter()
        .map(|(digest, object)| (digest.clone(), object.size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlobStore;
    use crate::store::{BucketStore, StoreTimeouts};
    use bytes::Bytes;
    use landfall_model::Descriptor;

    const HOUR: Duration = Duration::from_hours(1);

    fn blob(text: &str) -> Descriptor {
        Descriptor {
            digest: Digest::sha256(text.as_bytes()),
            size: text.len() as u64,
            media_type: "x/y".into(),
        }
    }

    /// Sweeps when so many hours have passed.
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
    async fn content_goes_in_two_steps_and_never_what_is_kept_claimed_or_written_since() {
        let bucket = Bucket::in_memory();
        store(&bucket, &["a", "bb", "ccc", "dddd"]).await;
        assert_eq!(
            sweep(&bucket, &["a"], 1, false).await,
            (vec![], vec![]),
            "what is young stays"
        );
        assert_eq!(sweep(&bucket, &["a"], 11, true).await.1.len(), 3);
        let (deleted, condemned) = sweep(&bucket, &["a"], 11, false).await;
        assert_eq!((deleted.len(), condemned.len()), (0, 3));
        // the clock of the store in memory stands still: the lists were written now
        let late = store(&bucket, &[]).await;
        assert!(
            has(&late, "a") && !has(&late, "bb"),
            "what is condemned counts as absent"
        );
        assert_eq!(
            sweep(&bucket, &["a"], 2, false).await,
            (vec![], vec![]),
            "its time has not come"
        );
        // one was written anew, one is kept by now, and one is neither
        store(&bucket, &["bb"]).await;
        assert_eq!(
            sweep(&bucket, &["a", "ccc"], 11, true).await,
            (vec![4], vec![2])
        );
        assert_eq!(
            sweep(&bucket, &["a", "ccc"], 11, false).await,
            (vec![4], vec![2])
        );
        let keys = ["bb", "dddd"].map(|text| keys::blob(&blob(text).digest));
        assert!(
            bucket.look(&keys[0]).await.unwrap().is_some()
                && bucket.look(&keys[1]).await.unwrap().is_none()
        );
        let after = store(&bucket, &[]).await;
        assert_eq!(
            ["a", "bb", "ccc"].map(|text| has(&after, text)),
            [true, false, true]
        );
    }

    #[tokio::test]
    async fn claims_keep_and_a_claim_that_is_no_lock_stops_the_sweep() {
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
        let collected = kept.run().await.unwrap();
        assert_eq!(
            (collected.kept, collected.kept_bytes, collected.claims),
            (1, 2, 1)
        );
    }
}
