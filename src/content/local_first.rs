//! Upstream, with content that is at hand in front of it: what comes from there is checked like all else, and
//! where it is wrong, upstream is asked.

use crate::content::Part;
use crate::content::{BlobRead, LocalSource, Source};
use crate::http::{ByteStream, Error, ErrorKind};
use crate::model::{Digest, Limits};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Pieces of content that are read at once from near: more cost memory and are no faster.
const STREAMS: usize = 4;

/// Upstream, with content that is at hand in front of it.
pub struct LocalFirst {
    blobs: Arc<dyn BlobRead>,
    local: LocalSource,
    upstream: Arc<dyn Source>,
    streams: Arc<Semaphore>,
    /// What was read from its beginning: if that is asked for again, it was wrong.
    read: Mutex<HashSet<Digest>>,
    wrong: Mutex<HashSet<Digest>>,
}

impl LocalFirst {
    /// `upstream`, with `blobs` in front.
    pub fn new(blobs: Arc<dyn BlobRead>, upstream: Arc<dyn Source>) -> LocalFirst {
        let local = LocalSource(blobs.clone());
        let streams = Arc::new(Semaphore::new(STREAMS));
        LocalFirst { blobs, local, upstream, streams, read: Mutex::default(), wrong: Mutex::default() }
    }

    /// What came was wrong. Whether it came from near.
    fn blame(&self, digest: &Digest) -> bool {
        let near = self.read.lock().unwrap_or_else(PoisonError::into_inner).contains(digest);
        near && self.wrong.lock().unwrap_or_else(PoisonError::into_inner).insert(digest.clone())
    }

    fn is_near(&self, part: &Part, offset: u64) -> bool {
        let digest = &part.descriptor.digest;
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let near = !wrong.contains(digest)
            && self.blobs.stat(digest).is_ok_and(|size| size == Some(part.descriptor.size));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if near && offset == 0 && !read.insert(digest.clone()) {
            wrong.insert(digest.clone());
            return false;
        }
        near
    }
}

impl Source for LocalFirst {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<(u64, ByteStream), Error>> {
        Box::pin(async move {
            if !self.is_near(part, offset) {
                return self.upstream.open(part, offset).await;
            }
            // damage is worth another attempt, which upstream gets
            let wrong = |error: Error| Error::new(ErrorKind::Invalid, error.message);
            let turn = self.streams.clone().acquire_owned().await;
            let turn = turn.map_err(|error| Error::new(ErrorKind::Local, error.to_string()))?;
            let (start, stream) = self.local.open(part, offset).await.map_err(wrong)?;
            let stream = stream.map(move |piece| {
                let _until_it_ends = &turn;
                piece.map_err(wrong)
            });
            Ok((start, stream.boxed()))
        })
    }

    fn is_checked(&self) -> bool {
        false
    }

    fn limits(&self) -> Limits {
        self.upstream.limits()
    }

    fn distrust_ranges<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // upstream is not to blame for what did not come from there
            if !self.blame(&part.descriptor.digest) {
                self.upstream.distrust_ranges(part).await;
            }
        })
    }
}
