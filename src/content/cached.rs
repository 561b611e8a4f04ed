//! Upstream with a store in front of it.

use super::blocking::blocking;
use super::follow::{Bringing, Ended, follow};
use super::{IdleSlots, Local, LocalSink, LocalSource, Opened, Part, Source, Transfer, TransferError};
use crate::http::Error;
use crate::model::{Digest, Limits};
use crate::report::Silent;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, oneshot, watch};

/// What a [`Cached`] keeps of the content that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: content of the store comes from there, the rest streams past.
    Nothing,
    /// Everything: what the store lacks is brought into it first.
    Everything,
}

/// Upstream with a store in front of it.
pub(crate) struct Cached {
    disk: Arc<dyn LocalSink>,
    local: LocalSource,
    upstream: Arc<dyn Source>,
    keep: Keep,
    limits: Limits,
    slots: IdleSlots,
    /// The writes into the store that were followed last, by digest.
    keeping: Mutex<HashMap<Digest, Ended>>,
}

impl Cached {
    /// `upstream`, with `disk` in front.
    pub(crate) fn new(
        disk: Arc<dyn LocalSink>,
        upstream: Arc<dyn Source>,
        keep: Keep,
        limits: Limits,
    ) -> Cached {
        // there is no end of a run to wait for: what comes is wanted now
        let (_, begun) = watch::channel(true);
        let slots = IdleSlots::new(Arc::new(Semaphore::new(limits.jobs)), begun);
        Cached {
            local: LocalSource(disk.clone()),
            disk,
            upstream,
            keep,
            limits,
            slots,
            keeping: Mutex::default(),
        }
    }

    fn keeping(&self) -> MutexGuard<'_, HashMap<Digest, Ended>> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a part into the store, and reads it there while it comes.
    async fn open_coming(&self, part: &Part, offset: u64) -> Result<Opened, Error> {
        let (by, begun) = oneshot::channel();
        let sink = Local::new(self.disk.clone(), self.limits, Some(self.slots.clone())).followed(by);
        let (source, limits) = (self.upstream.clone(), self.limits);
        // bytes are counted on their way out, not a second time on their way in
        let transfer = Transfer { source, sink: Arc::new(sink), limits, progress: Arc::new(Silent) };
        let wanted = part.clone();
        let mut bringing = Bringing::new(async move { transfer.bring(&wanted).await });
        self.keeping().insert(part.descriptor.digest.clone(), bringing.ended());
        match begun.await {
            Ok(follower) => {
                let stream = follow(follower, bringing, (offset, part.descriptor.size)).await?;
                Ok(Opened::checked(offset, stream))
            }
            // it is there by now, or no write could begin
            Err(_) => {
                bringing.end().await?;
                self.local.open(part, offset).await
            }
        }
    }
}

impl Source for Cached {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move {
            let (disk, descriptor) = (self.disk.clone(), part.descriptor.clone());
            let is_here = blocking(move || disk.holds(&descriptor, false)).await;
            match (is_here.map_err(|failed| *failed.why)?, self.keep) {
                (true, _) => self.local.open(part, offset).await,
                (false, Keep::Nothing) => self.upstream.open(part, offset).await,
                (false, Keep::Everything) => self.open_coming(part, offset).await,
            }
        })
    }
    fn kept<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<(), TransferError>> {
        let keeping = self.keeping().remove(&part.descriptor.digest);
        Box::pin(async move {
            let Some(mut ended) = keeping else { return Ok(()) };
            match ended.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(result)) => result.clone().map_err(|failed| TransferError::source(*failed.why)),
                // nobody followed it to its end
                _ => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{BlobRead, ByteRange, ContentError, Entry, Origin, PartialBlob, WriteError, Writer};
    use crate::http::ErrorKind;
    use crate::model::Descriptor;
    use futures_util::TryStreamExt;
    use std::io::Read;
    use std::sync::mpsc;

    const CONTENT: &[u8] = b"hello world";

    /// Upstream.
    struct Hello;

    impl Source for Hello {
        fn open<'a>(&'a self, _: &'a Part, offset: u64) -> BoxFuture<'a, Result<Opened, Error>> {
            let rest = &CONTENT[offset as usize..];
            Box::pin(std::future::ready(Ok(Opened { start: offset, ..Opened::whole(rest.into()) })))
        }
    }

    /// A disk that keeps its content when it is told to, or is full by then.
    struct Slow(Mutex<Option<mpsc::Receiver<bool>>>);

    impl BlobRead for Slow {
        fn stat(&self, _: &Digest) -> Result<Option<u64>, ContentError> {
            Ok(None)
        }

        fn open(&self, digest: &Digest, _: u64) -> Result<Box<dyn Read + Send>, ContentError> {
            Err(ContentError::Missing { digest: digest.clone() })
        }
    }

    impl LocalSink for Slow {
        fn holds(&self, _: &Descriptor, _: bool) -> Result<bool, WriteError> {
            Ok(false)
        }

        fn must_hash(&self, _: &Descriptor, _: bool) -> bool {
            false
        }

        fn take(&self, _: &Descriptor, _: &[u8]) -> Result<(), WriteError> {
            Ok(())
        }

        fn begin(
            &self,
            descriptor: &Descriptor,
            _: bool,
        ) -> Result<Option<(Writer, Vec<ByteRange>)>, WriteError> {
            let keeps = Mutex::new(self.0.lock().unwrap().take().unwrap());
            Ok(Some((Writer::new(SlowPartial { keeps, bytes: Mutex::default() }, descriptor), Vec::new())))
        }

        fn name(&self, _: &mut dyn Iterator<Item = Entry>) -> Result<(), WriteError> {
            Ok(())
        }
    }

    #[derive(Debug)]
    struct SlowPartial {
        keeps: Mutex<mpsc::Receiver<bool>>,
        bytes: Mutex<Vec<u8>>,
    }

    impl PartialBlob for SlowPartial {
        fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), WriteError> {
            buffer.copy_from_slice(&self.bytes.lock().unwrap()[at as usize..][..buffer.len()]);
            Ok(())
        }

        fn write(&self, bytes: &[u8], _: u64) -> Result<(), WriteError> {
            self.bytes.lock().unwrap().extend_from_slice(bytes);
            Ok(())
        }

        fn record(&self, _: ByteRange) -> std::io::Result<()> {
            Ok(())
        }

        fn clear(&self) -> Result<(), WriteError> {
            Ok(())
        }

        fn keep(&self) -> Result<(), WriteError> {
            match self.keeps.lock().unwrap().recv().unwrap() {
                true => Ok(()),
                false => Err(WriteError::io("write", "x".as_ref(), std::io::ErrorKind::StorageFull.into())),
            }
        }
    }

    #[tokio::test]
    async fn content_goes_on_before_the_disk_has_it_and_what_the_disk_says_is_told() {
        for has_room in [true, false] {
            let (tell, keeps) = mpsc::channel();
            let disk = Arc::new(Slow(Mutex::new(Some(keeps))));
            let cached = Cached::new(disk, Arc::new(Hello), Keep::Everything, Limits::default());
            let descriptor = Descriptor {
                digest: Digest::sha256(CONTENT),
                size: CONTENT.len() as u64,
                media_type: "x/y".into(),
            };
            let part = Part { descriptor, origin: Origin::Url("u".into()) };
            let opened = cached.open(&part, 0).await.unwrap();
            let all: Vec<_> = opened.stream.try_collect().await.unwrap();
            assert_eq!(all.concat(), CONTENT);
            // it is all out, and the disk has not said a word
            tell.send(has_room).unwrap();
            let kept = cached.kept(&part).await;
            let said = kept.as_ref().err().map(|failed| failed.why.kind);
            assert_eq!(said, (!has_room).then_some(ErrorKind::Local));
            assert_eq!(kept.is_err_and(|failed| failed.is_full()), !has_room);
        }
    }
}
