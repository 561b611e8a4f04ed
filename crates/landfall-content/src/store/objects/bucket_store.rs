//! The store in an object store. Lists show which blobs are present; other blobs are looked up.

use super::content::BlobSizes;
use super::{content, gc};
use crate::bucket::{Bucket, BucketObject, PutMode, PutOutcome};
use crate::verified_writer::BlobHash;
use crate::{ContentError, WriteError};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Descriptor, Digest, locked};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many blobs are looked up at the same time.
const CONCURRENT_LOOKUPS: usize = 32;

/// The store in a folder of an object store. It is cheap to clone.
#[derive(Clone)]
pub struct BucketStore(Arc<BucketStoreInner>);

struct BucketStoreInner {
    bucket: Bucket,
    timeouts: StoreTimeouts,
    known: Mutex<KnownContent>,
}

/// The known state of the blobs in the store.
#[derive(Default)]
struct KnownContent {
    /// Blobs that are present: blobs in lists, and blobs that this process wrote or looked up.
    present: BlobSizes,
    /// Present blobs that no list has yet.
    unlisted: BlobSizes,
    /// Blobs that `gc` may delete, and damaged or missing blobs. They count as absent, so a run
    /// that needs them writes them again.
    condemned: BTreeSet<Digest>,
    /// The blobs that the lists contain, if the lists are not trusted.
    distrusted: BlobSizes,
    /// The lists that were read.
    lists: Vec<BucketObject>,
}

impl KnownContent {
    /// Reads the lists. Returns `None` if there are lists and they are the same as `before`.
    ///
    /// A `gc` deletes lists of present blobs before the blobs, and lists of condemned blobs after
    /// them. The lists of condemned blobs must be read first, so that a blob that is deleted
    /// meanwhile is not considered present.
    async fn read(
        bucket: &Bucket,
        before: &[BucketObject],
    ) -> Result<Option<KnownContent>, HttpError> {
        let condemned = content::list_all(bucket, CONDEMNED).await?;
        let condemned_lists = content::read_each(bucket, condemned.clone()).await?;
        let index = content::list_all(bucket, INDEX).await?;
        let lists: Vec<BucketObject> = condemned.into_iter().chain(index.iter().cloned()).collect();
        // lists are immutable and named by their digest, so equal keys mean equal content
        if !lists.is_empty() && lists == before {
            return Ok(None);
        }
        let mut condemned_at = BTreeMap::new();
        for list in condemned_lists {
            for digest in list.contents.into_keys() {
                let at = condemned_at.entry(digest).or_insert(list.written);
                *at = list.written.max(*at);
            }
        }
        let mut present = BlobSizes::new();
        for list in content::read_each(bucket, index).await? {
            // a younger list of present blobs wins: its run has written the blob again, or gc found
            // that it is needed
            present.extend(list.contents.into_iter().filter(|(digest, _)| {
                condemned_at
                    .get(digest)
                    .is_none_or(|at| *at <= list.written)
            }));
        }
        let condemned = condemned_at
            .into_keys()
            .filter(|digest| !present.contains_key(digest))
            .collect();
        Ok(Some(KnownContent {
            present,
            condemned,
            lists,
            ..KnownContent::default()
        }))
    }
}

impl BucketStore {
    /// Opens the store and reads its lists.
    ///
    /// # Errors
    /// If a request to the object store fails, or a list is damaged.
    pub async fn open(bucket: Bucket, timeouts: StoreTimeouts) -> Result<BucketStore, HttpError> {
        let known = Mutex::new(KnownContent::read(&bucket, &[]).await?.unwrap_or_default());
        Ok(BucketStore(Arc::new(BucketStoreInner {
            bucket,
            timeouts,
            known,
        })))
    }

    /// Claims blobs, and reads the lists again if they have changed. `gc` does not delete a claimed
    /// blob that the lists then show as present and not condemned.
    pub(super) async fn claim(
        &self,
        fingerprint: &Digest,
        lock: Bytes,
        wanted: &BTreeSet<Digest>,
    ) -> Result<(), HttpError> {
        // claimed before the lists are read, because the lists are reliable only for claimed blobs
        let gc_wait = self.timeouts().gc_wait;
        gc::claim(self.bucket(), fingerprint, lock, wanted, gc_wait).await?;
        let before = locked(&self.0.known).lists.clone();
        if let Some(known) = KnownContent::read(self.bucket(), &before).await? {
            *locked(&self.0.known) = known;
        }
        Ok(())
    }

    pub(super) fn timeouts(&self) -> StoreTimeouts {
        self.0.timeouts
    }

    /// Returns the folder of the object store.
    pub fn bucket(&self) -> &Bucket {
        &self.0.bucket
    }

    /// Returns the size of a blob in bytes if it is known to be present, without a request.
    pub fn known_size(&self, digest: &Digest) -> Option<u64> {
        locked(&self.0.known).present.get(digest).copied()
    }

    /// Whether `gc` may delete the blob, or the blob is damaged or missing: a run that needs it
    /// writes it again.
    pub(super) fn is_condemned(&self, digest: &Digest) -> bool {
        locked(&self.0.known).condemned.contains(digest)
    }

    /// Returns the object that is to be replaced, if the blob is condemned and has an object.
    pub(super) async fn condemned_object(
        &self,
        digest: &Digest,
    ) -> Result<Option<BucketObject>, HttpError> {
        if self.is_condemned(digest) {
            self.bucket().head(&blob(digest)).await
        } else {
            Ok(None)
        }
    }

    /// Returns the size of a blob in bytes, or `None` if it is absent.
    pub(super) async fn look_up(&self, digest: &Digest) -> Result<Option<u64>, HttpError> {
        if let Some(size) = self.known_size(digest) {
            return Ok(Some(size));
        }
        if self.is_condemned(digest) {
            return Ok(None);
        }
        let found = self
            .bucket()
            .head(&blob(digest))
            .await?
            .map(|object| object.size);
        if let Some(size) = found {
            self.note_present(digest, size);
        }
        Ok(found)
    }

    pub(super) fn note_present(&self, digest: &Digest, size: u64) {
        let mut known = locked(&self.0.known);
        // this run has written or found the blob, and has a claim on it
        known.condemned.remove(digest);
        if known.present.insert(digest.clone(), size) != Some(size) {
            known.unlisted.insert(digest.clone(), size);
        }
    }

    /// Writes a list of the blobs that no list has, if there are at least `least` such blobs.
    pub(super) async fn write_list(&self, least: usize) -> Result<(), HttpError> {
        let unlisted = {
            let mut known = locked(&self.0.known);
            if known.unlisted.len() < least {
                return Ok(());
            }
            // removed before the list is sent, because other threads write blobs meanwhile
            std::mem::take(&mut known.unlisted)
        };
        let written = content::write(self.bucket(), INDEX, &unlisted).await;
        if written.is_err() {
            // kept for the next list; other runs look these blobs up one by one until then
            locked(&self.0.known).unlisted.extend(unlisted);
        }
        written.map(drop)
    }

    /// Forgets that a blob is present, so that it is looked up again.
    pub(super) fn forget(&self, digest: &Digest) {
        locked(&self.0.known).present.remove(digest);
    }

    /// Treats a damaged blob as absent, so that it is written again. Returns its size if it is
    /// known.
    pub(super) fn distrust(&self, digest: &Digest) -> Option<u64> {
        let mut known = locked(&self.0.known);
        known.unlisted.remove(digest);
        // a condemned blob is overwritten even if an object with its key exists
        known.condemned.insert(digest.clone());
        known.present.remove(digest)
    }

    pub(super) fn unlisted_count(&self) -> usize {
        locked(&self.0.known).unlisted.len()
    }

    /// Writes a list of damaged or missing blobs, so that every run considers them absent and
    /// rewrites those that it needs.
    pub(super) async fn condemn(
        &self,
        damaged: impl IntoIterator<Item = Digest>,
    ) -> Result<(), HttpError> {
        let sized = damaged
            .into_iter()
            .map(|digest| (self.distrust(&digest).unwrap_or_default(), digest));
        let damaged: BlobSizes = sized.map(|(size, digest)| (digest, size)).collect();
        content::write(self.bucket(), CONDEMNED, &damaged)
            .await
            .map(drop)
    }

    /// Ignores the lists from now on, so that each blob is looked up.
    pub(super) fn distrust_lists(&self) {
        let mut known = locked(&self.0.known);
        known.distrusted = std::mem::take(&mut known.present);
    }

    /// Stores a small blob after checking its size and digest.
    pub(super) async fn put(
        &self,
        descriptor: &Descriptor,
        bytes: Bytes,
    ) -> Result<(), WriteError> {
        let Descriptor { digest, size, .. } = descriptor;
        let mut hash = BlobHash::new(descriptor);
        hash.update(&bytes);
        hash.check()?;
        let bucket = self.bucket();
        let key = blob(digest);
        let put = async {
            // a condemned blob is overwritten even if it is intact: gc then keeps it, because it is
            // new
            if self.is_condemned(digest)
                // an object of another size is damaged, and is replaced
                || bucket
                    .put(&key, bytes.clone(), &PutMode::Create)
                    .await?
                    == PutOutcome::Refused
                    && bucket.head(&key).await?.map(|object| object.size) != Some(*size)
            {
                bucket.put(&key, bytes, &PutMode::Overwrite).await?;
            }
            Ok(())
        };
        put.await.map_err(refused)?;
        self.note_present(digest, *size);
        Ok(())
    }

    /// Returns which of the `wanted` blobs are present: by lists, or else by looking each one up.
    /// Absent blobs are condemned if a list that is not trusted contains them.
    pub(super) async fn find_present(
        &self,
        wanted: Vec<Descriptor>,
    ) -> Result<HashSet<Digest>, HttpError> {
        let (known, unknown): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|blob| self.known_size(&blob.digest) == Some(blob.size));
        let mut present: HashSet<Digest> = known.into_iter().map(|blob| blob.digest).collect();
        // in a new store, one listing saves a request for each blob
        if unknown.is_empty()
            || self
                .bucket()
                .list("blobs")
                .next()
                .await
                .transpose()?
                .is_none()
        {
            self.condemn(self.distrusted(&unknown)).await?;
            return Ok(present);
        }
        // the size in a list may be that of an earlier object
        unknown.iter().for_each(|blob| self.forget(&blob.digest));
        let mut missing = self.distrusted(&unknown);
        let lookups = futures_util::stream::iter(unknown).map(|blob| async move {
            let found = self.look_up(&blob.digest).await?;
            Ok::<_, HttpError>((found == Some(blob.size)).then_some(blob.digest))
        });
        let found: Vec<Option<Digest>> = lookups
            .buffer_unordered(CONCURRENT_LOOKUPS)
            .try_collect()
            .await?;
        present.extend(found.into_iter().flatten());
        missing.retain(|digest| !present.contains(digest));
        self.condemn(missing).await?;
        Ok(present)
    }

    /// Returns which of these blobs are in a list that is not trusted.
    fn distrusted(&self, blobs: &[Descriptor]) -> Vec<Digest> {
        let known = locked(&self.0.known);
        let digests = blobs.iter().map(|blob| &blob.digest);
        digests
            .filter(|digest| known.distrusted.contains_key(digest))
            .cloned()
            .collect()
    }
}

/// Turns a failed request to the object store into an error of the sink.
pub(super) fn refused(error: HttpError) -> WriteError {
    WriteError::Refused(error.to_string())
}

/// Turns a failed request to the object store into an error of reading a blob.
pub(in crate::store) fn unreadable(digest: &Digest, error: HttpError) -> ContentError {
    match error.kind {
        ErrorKind::NotFound => ContentError::missing(digest),
        _ => ContentError::read(digest, std::io::Error::other(error)),
    }
}

// The keys of the store in a bucket.

/// The folder of lists of present blobs.
pub(super) const INDEX: &str = "index";
/// The folder of locks that runs use.
pub(super) const CLAIMS: &str = "claims";
/// The folder of lists of blobs that a later `gc` may delete.
pub(super) const CONDEMNED: &str = "condemned";
/// The folder of lists of blobs that a `gc` is deleting.
pub(super) const DELETING: &str = "deleting";
/// The folder of records of uploads in progress.
pub(super) const UPLOADS: &str = "uploads";

/// Returns the key of a blob.
pub(super) fn blob(digest: &Digest) -> String {
    digest.layout_path()
}

/// Returns the key of the record of a blob's upload.
pub(super) fn upload(digest: &Digest) -> String {
    format!("{UPLOADS}/{}/{}", digest.algorithm().as_str(), digest.hex())
}

/// Returns the key of an object in `folder` that is named by a digest.
pub(super) fn named(folder: &str, digest: &Digest) -> String {
    format!("{folder}/{}", digest.hex())
}

/// Like [`named`], with a suffix that no other process uses.
pub(super) fn named_apart(folder: &str, digest: &Digest) -> String {
    format!("{}-{}", named(folder, digest), unique())
}

/// Returns the key of the claim that all runs with this lock write in the hour of `now`.
/// The claim of a past hour is never written again, so a `gc` that deletes it cannot delete the
/// claim of a run that has just begun.
pub(super) fn claim(fingerprint: &Digest, now: SystemTime) -> String {
    let hour = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 3600;
    format!("{}-{hour}", named(CLAIMS, fingerprint))
}

/// Returns the hex digest in the key of a named object, or `None` if landfall does not write such
/// keys.
pub(super) fn hex_of(key: &str) -> Option<&str> {
    let (_, name) = key.split_once('/')?;
    // without the suffix of claims and markers
    let hex = name.split_once('-').map_or(name, |(hex, _)| hex);
    (hex.len() == 64 && hex.bytes().all(|c| c.is_ascii_hexdigit())).then_some(hex)
}

/// Returns the digest in the key of a blob or an upload record in `folder`.
pub(super) fn content_of(folder: &str, key: &str) -> Option<Digest> {
    let (algorithm, hex) = key
        .strip_prefix(folder)?
        .strip_prefix('/')?
        .split_once('/')?;
    format!("{algorithm}:{hex}").parse().ok()
}

/// Returns a string that no other process generates.
pub(super) fn unique() -> String {
    // the standard library seeds `RandomState` from the random numbers of the system
    format!("{:016x}", RandomState::new().hash_one(0))
}

/// How long a process waits for other processes that use the same store.
#[derive(Debug, Clone, Copy)]
pub struct StoreTimeouts {
    /// The interval at which a run renews its ownership of an upload.
    pub heartbeat: Duration,
    /// Another run may take over an upload when this time has passed since its last heartbeat.
    pub lease: Duration,
    /// How long a run waits for a `gc` that is deleting blobs that it needs.
    pub gc_wait: Duration,
}

impl StoreTimeouts {
    /// Returns the usual timeouts, with this limit for waiting for a `gc`.
    pub fn new(gc_wait: Duration) -> StoreTimeouts {
        StoreTimeouts {
            heartbeat: Duration::from_secs(4),
            // four heartbeats, so that one lost or late heartbeat does not cost the upload
            lease: Duration::from_secs(16),
            gc_wait,
        }
    }
}
