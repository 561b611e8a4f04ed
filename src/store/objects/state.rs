//! What the store knows to be there, and what it asks for.

use super::keys;
use super::list::{self, Contents};
use crate::bucket::{Bucket, Condition, Object};
use crate::content::{ContentError, WriteError};
use crate::http::{Error, ErrorKind};
use crate::model::{Descriptor, Digest};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Looks for single objects that are under way at once.
const LOOKS: usize = 32;

/// The store in a folder of an object store. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Objects(Arc<Inner>);

struct Inner {
    bucket: Bucket,
    known: Mutex<Known>,
}

/// What is known of the content there.
#[derive(Default)]
struct Known {
    /// By lists, and by what this process did and saw.
    here: Contents,
    /// What no list has yet.
    unlisted: Contents,
    /// What `gc` may delete: it counts as absent, and is written anew.
    condemned: BTreeSet<Digest>,
    /// What was condemned, and is written anew by this process.
    rescued: BTreeSet<Digest>,
}

impl Objects {
    /// Opens the store, and reads its lists.
    ///
    /// # Errors
    /// When the object store does not answer, or refuses.
    pub(crate) async fn open(bucket: Bucket) -> Result<Objects, Error> {
        let (index, condemned) =
            tokio::try_join!(list::read_all(&bucket, keys::INDEX), list::read_all(&bucket, keys::CONDEMNED))?;
        let mut condemned_at = BTreeMap::new();
        for list in condemned {
            for digest in list.contents.into_keys() {
                let at = condemned_at.entry(digest).or_insert(list.written);
                *at = list.written.max(*at);
            }
        }
        let mut here = Contents::new();
        for list in index {
            // who listed it after that has written it anew, or gc found it needed
            let holds = |digest: &Digest| condemned_at.get(digest).is_none_or(|at| *at <= list.written);
            here.extend(list.contents.into_iter().filter(|(digest, _)| holds(digest)));
        }
        let condemned = condemned_at.into_keys().filter(|digest| !here.contains_key(digest)).collect();
        let known = Mutex::new(Known { here, condemned, ..Known::default() });
        Ok(Objects(Arc::new(Inner { bucket, known })))
    }

    /// The folder.
    pub(crate) fn bucket(&self) -> &Bucket {
        &self.0.bucket
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size of content that is known to be there.
    pub(super) fn known_size(&self, digest: &Digest) -> Option<u64> {
        self.known().here.get(digest).copied()
    }

    /// Whether `gc` may delete it: whoever needs it writes it anew.
    pub(super) fn is_condemned(&self, digest: &Digest) -> bool {
        self.known().condemned.contains(digest)
    }

    /// What stands there of condemned content, and is to be replaced.
    pub(super) async fn condemned(&self, digest: &Digest) -> Result<Option<Object>, Error> {
        match self.is_condemned(digest) {
            true => self.bucket().look(&keys::blob(digest)).await,
            false => Ok(None),
        }
    }

    /// The size of content that is there; `None` where it is not.
    pub(super) async fn look(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        if let Some(size) = self.known_size(digest) {
            return Ok(Some(size));
        }
        if self.is_condemned(digest) {
            return Ok(None);
        }
        let found = self.bucket().look(&keys::blob(digest)).await?.map(|object| object.size);
        if let Some(size) = found {
            self.note(digest, size);
        }
        Ok(found)
    }

    /// This content is there.
    pub(super) fn note(&self, digest: &Digest, size: u64) {
        let mut known = self.known();
        if known.condemned.remove(digest) {
            known.rescued.insert(digest.clone());
        }
        if known.here.insert(digest.clone(), size).is_none() {
            known.unlisted.insert(digest.clone(), size);
        }
    }

    /// Writes a list of what none has, if that is `least` or more.
    pub(super) async fn list(&self, least: usize) -> Result<(), Error> {
        let unlisted = {
            let mut known = self.known();
            if known.unlisted.len() < least {
                return Ok(());
            }
            std::mem::take(&mut known.unlisted)
        };
        let written = list::write(self.bucket(), keys::INDEX, &unlisted).await;
        if written.is_err() {
            self.known().unlisted.extend(unlisted);
        }
        written.map(drop)
    }

    /// What is known of it does not count: it is looked for again.
    pub(super) fn forget(&self, digest: &Digest) {
        self.known().here.remove(digest);
    }

    /// It turned out damaged: it counts as absent, and is written anew over what stands there. Returns its size, where that
    /// is known.
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

    /// Lists content that turned out damaged, so that every run takes it for absent and writes it anew.
    pub(super) async fn condemn(&self, digest: &Digest) -> Result<(), Error> {
        let damaged = Contents::from([(digest.clone(), self.distrust(digest).unwrap_or_default())]);
        list::write(self.bucket(), keys::CONDEMNED, &damaged).await.map(drop)
    }

    /// Looks once more for what was condemned: a `gc` that ran meanwhile may have deleted it after it was written anew.
    pub(super) async fn check_rescued(&self) -> Result<(), Error> {
        let rescued = std::mem::take(&mut self.known().rescued);
        for digest in rescued {
            if self.bucket().look(&keys::blob(&digest)).await?.is_none() {
                let mut known = self.known();
                known.here.remove(&digest);
                known.unlisted.remove(&digest);
                let words = "a `landfall gc` deleted it while it was written anew; run this again";
                return Err(
                    Error::new(ErrorKind::Invalid, words).about(self.bucket().shown(&keys::blob(&digest)))
                );
            }
        }
        Ok(())
    }

    /// Keeps a small piece of content, which is checked.
    pub(super) async fn put(&self, descriptor: &Descriptor, bytes: Bytes) -> Result<(), WriteError> {
        let Descriptor { digest, size, .. } = descriptor;
        if bytes.len() as u64 != *size {
            return Err(WriteError::Size { wanted: digest.clone(), size: *size, found: bytes.len() as u64 });
        }
        if !digest.matches(&bytes) {
            let found = Digest::of(digest.algorithm(), &bytes);
            return Err(WriteError::Digest { wanted: digest.clone(), found });
        }
        // what is condemned is written again: its age is what saves it
        let condition = if self.is_condemned(digest) { Condition::Always } else { Condition::IfAbsent };
        self.bucket().put(&keys::blob(digest), bytes, &condition).await.map_err(refused)?;
        self.note(digest, *size);
        Ok(())
    }

    /// Which of `wanted` are there, by lists, and else by looking for each.
    pub(super) async fn find(&self, wanted: Vec<Descriptor>) -> Result<HashSet<Digest>, Error> {
        let (mut here, mut unknown) = (HashSet::new(), Vec::new());
        for descriptor in wanted {
            match self.known_size(&descriptor.digest) {
                Some(size) if size == descriptor.size => {
                    here.insert(descriptor.digest);
                }
                Some(_) => {}
                None => unknown.push(descriptor),
            }
        }
        // a new store is not asked for each
        if unknown.is_empty() || self.bucket().list("blobs").next().await.transpose()?.is_none() {
            return Ok(here);
        }
        let looks = futures_util::stream::iter(unknown).map(|descriptor| async move {
            let found = self.look(&descriptor.digest).await?;
            Ok::<_, Error>((found == Some(descriptor.size)).then_some(descriptor.digest))
        });
        let found: Vec<Option<Digest>> = looks.buffer_unordered(LOOKS).try_collect().await?;
        here.extend(found.into_iter().flatten());
        Ok(here)
    }
}

/// An object store's refusal, as a sink says it.
pub(super) fn refused(error: Error) -> WriteError {
    WriteError::Refused(error.to_string())
}

/// An error of reading, for content by digest.
pub(super) fn unreadable(digest: &Digest, error: Error) -> ContentError {
    match error.kind {
        ErrorKind::NotFound => ContentError::Missing { digest: digest.clone() },
        _ => ContentError::Read { digest: digest.clone(), source: std::io::Error::other(error) },
    }
}
