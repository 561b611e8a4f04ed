//! What the store knows to be there, and what it asks for.

use super::blob_list::{self, Contents};
use super::claims;
use super::keys;
use super::store_timeouts::StoreTimeouts;
use crate::bucket::{Bucket, BucketObject, PutCondition, PutOutcome};
use crate::{ContentError, WriteError};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Descriptor, Digest};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Looks for single objects that are under way at once.
const LOOKS: usize = 32;

/// The store in a folder of an object store. Cheap to clone.
#[derive(Clone)]
pub struct BucketStore(Arc<Inner>);

struct Inner {
    bucket: Bucket,
    patience: StoreTimeouts,
    known: Mutex<Known>,
}

/// What is known of the content there.
#[derive(Default)]
struct Known {
    /// By lists, and by what this process did and saw.
    here: Contents,
    /// What no list has yet.
    unlisted: Contents,
    /// What `gc` may delete, and what turned out damaged: it counts as absent, and is written anew.
    condemned: BTreeSet<Digest>,
    /// What lists say is here, where that does not count.
    doubted: Contents,
    /// The lists that were read.
    lists: Vec<BucketObject>,
}

impl Known {
    /// What the lists say, unless they are those that `before` says it by.
    ///
    /// A `gc` deletes lists of what is there before the content, and lists of what it deletes after
    /// it: in this order, what was deleted meanwhile is not taken for present.
    async fn read(bucket: &Bucket, before: &[BucketObject]) -> Result<Option<Known>, HttpError> {
        let condemned = blob_list::list_all(bucket, keys::CONDEMNED).await?;
        let condemned_lists = blob_list::read_each(bucket, condemned.clone()).await?;
        let index = blob_list::list_all(bucket, keys::INDEX).await?;
        let lists: Vec<BucketObject> = condemned.into_iter().chain(index.iter().cloned()).collect();
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
        let mut here = Contents::new();
        for list in blob_list::read_each(bucket, index).await? {
            // who listed it after that has written it anew, or gc found it needed
            let holds = |digest: &Digest| {
                condemned_at
                    .get(digest)
                    .is_none_or(|at| *at <= list.written)
            };
            here.extend(
                list.contents
                    .into_iter()
                    .filter(|(digest, _)| holds(digest)),
            );
        }
        let condemned = condemned_at
            .into_keys()
            .filter(|digest| !here.contains_key(digest))
            .collect();
        Ok(Some(Known {
            here,
            condemned,
            lists,
            ..Known::default()
        }))
    }
}

impl BucketStore {
    /// Opens the store, and reads its lists.
    ///
    /// # Errors
    /// When the object store does not answer, or refuses.
    pub async fn open(bucket: Bucket, patience: StoreTimeouts) -> Result<BucketStore, HttpError> {
        let known = Mutex::new(Known::read(&bucket, &[]).await?.unwrap_or_default());
        Ok(BucketStore(Arc::new(Inner {
            bucket,
            patience,
            known,
        })))
    }

    /// Claims content, and reads the lists again where they have changed: what is there then, and
    /// is not condemned, stays.
    pub(super) async fn claim(
        &self,
        lock: (&Digest, Bytes),
        wanted: &BTreeSet<Digest>,
    ) -> Result<(), HttpError> {
        claims::claim(self.bucket(), lock, wanted, self.patience().deletions).await?;
        let before = self.known().lists.clone();
        if let Some(known) = Known::read(self.bucket(), &before).await? {
            *self.known() = known;
        }
        Ok(())
    }

    /// How long others are waited for.
    pub(super) fn patience(&self) -> StoreTimeouts {
        self.0.patience
    }

    /// The folder.
    pub fn bucket(&self) -> &Bucket {
        &self.0.bucket
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size of content that is known to be there.
    pub fn known_size(&self, digest: &Digest) -> Option<u64> {
        self.known().here.get(digest).copied()
    }

    /// Whether `gc` may delete it: whoever needs it writes it anew.
    pub(super) fn is_condemned(&self, digest: &Digest) -> bool {
        self.known().condemned.contains(digest)
    }

    /// What stands there of condemned content, and is to be replaced.
    pub(super) async fn condemned(
        &self,
        digest: &Digest,
    ) -> Result<Option<BucketObject>, HttpError> {
        match self.is_condemned(digest) {
            true => self.bucket().look(&keys::blob(digest)).await,
            false => Ok(None),
        }
    }

    /// The size of content that is there; `None` where it is not.
    pub(super) async fn look(&self, digest: &Digest) -> Result<Option<u64>, HttpError> {
        if let Some(size) = self.known_size(digest) {
            return Ok(Some(size));
        }
        if self.is_condemned(digest) {
            return Ok(None);
        }
        let found = self
            .bucket()
            .look(&keys::blob(digest))
            .await?
            .map(|object| object.size);
        if let Some(size) = found {
            self.note(digest, size);
        }
        Ok(found)
    }

    /// This content is there.
    pub(super) fn note(&self, digest: &Digest, size: u64) {
        let mut known = self.known();
        known.condemned.remove(digest);
        if known.here.insert(digest.clone(), size) != Some(size) {
            known.unlisted.insert(digest.clone(), size);
        }
    }

    /// Writes a list of what none has, if that is `least` or more.
    pub(super) async fn list(&self, least: usize) -> Result<(), HttpError> {
        let unlisted = {
            let mut known = self.known();
            if known.unlisted.len() < least {
                return Ok(());
            }
            std::mem::take(&mut known.unlisted)
        };
        let written = blob_list::write(self.bucket(), keys::INDEX, &unlisted).await;
        if written.is_err() {
            self.known().unlisted.extend(unlisted);
        }
        written.map(drop)
    }

    /// What is known of it does not count: it is looked for again.
    pub(super) fn forget(&self, digest: &Digest) {
        self.known().here.remove(digest);
    }

    /// It turned out damaged: it counts as absent, and is written anew over what stands there.
    /// Returns its size, where that is known.
    pub(super) fn distrust(&self, digest: &Digest) -> Option<u64> {
        let mut known = self.known();
        known.unlisted.remove(digest);
        known.condemned.insert(digest.clone());
        known.here.remove(digest)
    }

    /// How much content no list has yet.
    pub(super) fn unlisted(&self) -> usize {
        self.known().unlisted.len()
    }

    /// Lists content that turned out damaged or missing, so that every run takes it for absent and
    /// writes it anew.
    pub(super) async fn condemn(
        &self,
        damaged: impl IntoIterator<Item = Digest>,
    ) -> Result<(), HttpError> {
        let sized = damaged
            .into_iter()
            .map(|digest| (self.distrust(&digest).unwrap_or_default(), digest));
        let damaged: Contents = sized.map(|(size, digest)| (digest, size)).collect();
        blob_list::write(self.bucket(), keys::CONDEMNED, &damaged)
            .await
            .map(drop)
    }

    /// What lists say does not count from now on: each is looked for.
    pub(super) fn distrust_lists(&self) {
        let mut known = self.known();
        known.doubted = std::mem::take(&mut known.here);
    }

    /// Keeps a small piece of content, which is checked.
    pub(super) async fn put(
        &self,
        descriptor: &Descriptor,
        bytes: Bytes,
    ) -> Result<(), WriteError> {
        let Descriptor { digest, size, .. } = descriptor;
        if bytes.len() as u64 != *size {
            return Err(WriteError::Size {
                wanted: digest.clone(),
                size: *size,
                found: bytes.len() as u64,
            });
        }
        if !digest.matches(&bytes) {
            let found = Digest::compute(digest.algorithm(), &bytes);
            return Err(WriteError::Digest {
                wanted: digest.clone(),
                found,
            });
        }
        let (bucket, key) = (self.bucket(), keys::blob(digest));
        let put = async {
            // what is condemned is written again: its age is what saves it
            if self.is_condemned(digest)
                || bucket
                    .put(&key, bytes.clone(), &PutCondition::IfAbsent)
                    .await?
                    == PutOutcome::Refused
                    && bucket.look(&key).await?.map(|object| object.size) != Some(*size)
            {
                bucket.put(&key, bytes, &PutCondition::Always).await?;
            }
            Ok(())
        };
        put.await.map_err(refused)?;
        self.note(digest, *size);
        Ok(())
    }

    /// Which of `wanted` are there, by lists, and else by looking for each. What a list has and is
    /// not there is condemned.
    pub(super) async fn find(&self, wanted: Vec<Descriptor>) -> Result<HashSet<Digest>, HttpError> {
        let (known, unknown): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|blob| self.known_size(&blob.digest) == Some(blob.size));
        let mut here: HashSet<Digest> = known.into_iter().map(|blob| blob.digest).collect();
        // a new store is not asked for each
        if unknown.is_empty()
            || self
                .bucket()
                .list("blobs")
                .next()
                .await
                .transpose()?
                .is_none()
        {
            self.condemn(self.doubted(&unknown)).await?;
            return Ok(here);
        }
        // a list may have the size that another object had before
        unknown.iter().for_each(|blob| self.forget(&blob.digest));
        let mut missing = self.doubted(&unknown);
        let looks = futures_util::stream::iter(unknown).map(|blob| async move {
            let found = self.look(&blob.digest).await?;
            Ok::<_, HttpError>((found == Some(blob.size)).then_some(blob.digest))
        });
        let found: Vec<Option<Digest>> = looks.buffer_unordered(LOOKS).try_collect().await?;
        here.extend(found.into_iter().flatten());
        missing.retain(|digest| !here.contains(digest));
        self.condemn(missing).await?;
        Ok(here)
    }

    /// Those that a list had.
    fn doubted(&self, blobs: &[Descriptor]) -> Vec<Digest> {
        let known = self.known();
        let digests = blobs.iter().map(|blob| &blob.digest);
        digests
            .filter(|digest| known.doubted.contains_key(digest))
            .cloned()
            .collect()
    }
}

/// An object store's refusal, as a sink says it.
pub(super) fn refused(error: HttpError) -> WriteError {
    WriteError::Refused(error.to_string())
}

/// An error of reading, for content by digest.
pub(super) fn unreadable(digest: &Digest, error: HttpError) -> ContentError {
    match error.kind {
        ErrorKind::NotFound => ContentError::Missing {
            digest: digest.clone(),
        },
        _ => ContentError::Read {
            digest: digest.clone(),
            source: std::io::Error::other(error),
        },
    }
}
