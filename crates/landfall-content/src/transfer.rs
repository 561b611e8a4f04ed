//! The way of one part from a source to a sink. The loop in [`Transfer::bring`] is the only one
//! that tries a part again; what it counts stands in [`super::retry`].

use super::part_opener::pause_for;
use super::{BlobSink, EntryPart, FailureCause, PartOpener, PartOrigin, PartSource, TransferError};
use landfall_http::LendableSlot;
use landfall_model::Limits;
use landfall_model::report::Progress;
use std::sync::Arc;

/// A source, a sink, and how parts are moved from one to the other.
pub struct Transfer {
    /// Where parts are read from.
    pub source: Arc<dyn PartSource>,
    /// Where they are brought to.
    pub sink: Arc<dyn BlobSink>,
    /// Attempts, and the pauses between them.
    pub limits: Limits,
    /// Counts the bytes.
    pub progress: Arc<dyn Progress>,
}

/// How the sink got a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferOutcome {
    /// The sink had it already, here or in another of its repositories.
    There,
    /// So many bytes of it were received.
    Received(u64),
}

impl Transfer {
    /// Brings one part to the sink. If the source breaks off, it is resumed at its last byte, under
    /// the same write. `slot` is lent while the source gives nothing.
    ///
    /// # Errors
    /// Which side failed, after all attempts.
    pub async fn bring(
        &self,
        part: &EntryPart,
        slot: Arc<dyn LendableSlot>,
    ) -> Result<TransferOutcome, TransferError> {
        let PartOrigin::Urls(urls) = &part.origin else {
            return self.bring_from(part, slot).await;
        };
        let mut failed: Option<TransferError> = None;
        for url in urls {
            let origin = PartOrigin::Url(url.clone());
            let part = EntryPart {
                descriptor: part.descriptor.clone(),
                origin,
            };
            let next = self.bring_from(&part, slot.clone()).await;
            let error = match (next, failed.take()) {
                (Err(error), None) => error,
                (Err(error), Some(first)) => first.then(url, &error),
                (brought, _) => return brought,
            };
            if !error.is_elsewhere() {
                return Err(error);
            }
            failed = Some(error);
        }
        failed.map_or(Ok(TransferOutcome::There), Err)
    }

    async fn bring_from(
        &self,
        part: &EntryPart,
        slot: Arc<dyn LendableSlot>,
    ) -> Result<TransferOutcome, TransferError> {
        let opener = PartOpener::new(
            self.source.clone(),
            part,
            slot,
            &self.limits,
            self.progress.clone(),
        );
        let mut counted = Counted {
            opener: Arc::new(opener),
            is_settled: false,
        };
        let brought = self.bring_by(part, &counted.opener).await;
        if brought.is_ok() {
            counted.opener.settled();
            counted.is_settled = true;
        }
        brought
    }

    async fn bring_by(
        &self,
        part: &EntryPart,
        opener: &Arc<PartOpener>,
    ) -> Result<TransferOutcome, TransferError> {
        let mut in_order = false;
        loop {
            let Some(write) = self.sink.begin(&part.descriptor, in_order).await? else {
                return Ok(match opener.received() {
                    0 => TransferOutcome::There,
                    received => TransferOutcome::Received(received),
                });
            };
            opener.begin();
            let Err(failed) = write.fill(opener).await else {
                return Ok(TransferOutcome::Received(opener.received()));
            };
            in_order |= matches!(failed.cause, FailureCause::Wrong | FailureCause::WrongOnce);
            match opener.after(&failed) {
                Some(pause) => pause_for(pause).await,
                None => return Err(failed.error),
            }
        }
    }
}

/// What a transfer counted of its part. One that ends without the part, by an error or because its
/// image ended first, leaves all of it to do.
struct Counted {
    opener: Arc<PartOpener>,
    is_settled: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !self.is_settled {
            self.opener.given_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DiskStore;
    use crate::{
        BlobRead, BlobStore, BlobWrite, ByteRange, ContentError, FailedAttempt, IdleSlots,
        LocalSink, LocalStore, LockEntry, OpenedPart, PartOrigin, VerifiedWriter, WriteError,
    };
    use bytes::Bytes;
    use futures_util::StreamExt;
    use futures_util::future::BoxFuture;
    use landfall_http::{ErrorKind, HttpError, UnlimitedSlot};
    use landfall_model::report::{SilentProgress, TransferSide};
    use landfall_model::{Descriptor, Digest};
    use std::collections::VecDeque;
    use std::io::Read;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::sync::{Semaphore, watch};

    const CONTENT: &str = "hello world";

    /// Gives one answer after another: its content up to a byte at which it breaks off.
    struct Answers {
        answers: Mutex<VecDeque<(&'static str, usize)>>,
        offsets: Mutex<Vec<u64>>,
        distrusted: Arc<AtomicUsize>,
    }

    impl PartSource for Answers {
        fn open<'a>(
            &'a self,
            _: &'a EntryPart,
            offset: u64,
        ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
            self.offsets.lock().unwrap().push(offset);
            let answer = self.answers.lock().unwrap().pop_front();
            Box::pin(async move {
                let gone = || HttpError::new(ErrorKind::NotFound, "gone");
                let (content, end) = answer.ok_or_else(gone)?;
                let mut pieces = vec![Ok(Bytes::from(&content[offset as usize..end]))];
                if end < content.len() {
                    pieces.push(Err(HttpError::new(ErrorKind::Network, "cut")));
                }
                let opened =
                    OpenedPart::unchecked(offset, futures_util::stream::iter(pieces).boxed());
                let distrusted = self.distrusted.clone();
                Ok(match offset {
                    0 => opened,
                    _ => opened.on_wrong(move || {
                        distrusted.fetch_add(1, Ordering::Relaxed);
                    }),
                })
            })
        }
    }

    /// Resumes nothing, and refuses so many attempts.
    #[derive(Clone, Default)]
    struct Whole {
        refuses: Arc<AtomicUsize>,
        begun: Arc<AtomicUsize>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl BlobSink for Whole {
        fn begin<'a>(
            &'a self,
            _: &'a Descriptor,
            _: bool,
        ) -> BoxFuture<'a, Result<Option<Box<dyn BlobWrite>>, TransferError>> {
            self.begun.fetch_add(1, Ordering::Relaxed);
            let write: Box<dyn BlobWrite> = Box::new(self.clone());
            Box::pin(std::future::ready(Ok(Some(write))))
        }
    }

    impl BlobWrite for Whole {
        fn fill(
            self: Box<Self>,
            opener: &Arc<PartOpener>,
        ) -> BoxFuture<'_, Result<(), FailedAttempt>> {
            Box::pin(async move {
                let mut stream = opener
                    .stream(0)
                    .await
                    .map_err(|_| opener.failure().unwrap())?;
                self.taken.lock().unwrap().clear();
                while let Some(bytes) = stream.next().await {
                    let bytes = bytes.map_err(|_| opener.failure().unwrap())?;
                    self.taken.lock().unwrap().extend_from_slice(&bytes);
                }
                if self
                    .refuses
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                        left.checked_sub(1)
                    })
                    .is_ok()
                {
                    let error = TransferError::new(
                        TransferSide::Destination,
                        ErrorKind::Status(500),
                        "full",
                    );
                    return Err(FailedAttempt::new(error, FailureCause::Sink));
                }
                Ok(())
            })
        }
    }

    struct Outcome {
        brought: Result<TransferOutcome, TransferError>,
        offsets: Vec<u64>,
        distrusted: usize,
    }

    async fn bring(answers: &[(&'static str, usize)], sink: Arc<dyn BlobSink>) -> Outcome {
        let source = Arc::new(Answers {
            answers: Mutex::new(answers.iter().copied().collect()),
            offsets: Mutex::default(),
            distrusted: Arc::default(),
        });
        let limits = Limits {
            attempts: 3,
            backoff: Duration::from_millis(1),
            progress: 1,
            ..Limits::default()
        };
        let transfer = Transfer {
            source: source.clone(),
            sink,
            limits,
            progress: Arc::new(SilentProgress),
        };
        let descriptor = Descriptor {
            digest: Digest::sha256(CONTENT.as_bytes()),
            size: CONTENT.len() as u64,
            media_type: "x/y".into(),
        };
        let part = EntryPart {
            descriptor,
            origin: PartOrigin::Url("u".into()),
        };
        let brought = transfer.bring(&part, Arc::new(UnlimitedSlot)).await;
        let offsets = source.offsets.lock().unwrap().clone();
        Outcome {
            brought,
            offsets,
            distrusted: source.distrusted.load(Ordering::Relaxed),
        }
    }

    #[tokio::test]
    async fn a_source_is_resumed_whether_the_sink_can_resume_or_not() {
        let cut = [(CONTENT, 3), (CONTENT, 5), (CONTENT, 11)];
        let whole = Whole::default();
        let outcome = bring(&cut, Arc::new(whole.clone())).await;
        assert_eq!(outcome.brought.unwrap(), TransferOutcome::Received(11));
        assert_eq!(
            (outcome.offsets, whole.begun.load(Ordering::Relaxed)),
            (vec![0, 3, 5], 1)
        );
        assert_eq!(*whole.taken.lock().unwrap(), CONTENT.as_bytes());

        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskStore::open(dir.path()).unwrap());
        let local = || Arc::new(LocalSink::new(disk.clone(), Limits::default(), None));
        let outcome = bring(&cut, local()).await;
        assert_eq!(
            (outcome.brought.unwrap(), outcome.offsets),
            (TransferOutcome::Received(11), vec![0, 3, 5])
        );
        assert_eq!(
            disk.stat(&Digest::sha256(CONTENT.as_bytes())).unwrap(),
            Some(11)
        );
        assert_eq!(
            bring(&[], local()).await.brought.unwrap(),
            TransferOutcome::There
        );
    }

    /// A disk that counts how often a write was begun, which hashes what is there.
    struct Counting(DiskStore, AtomicUsize);

    impl BlobRead for Counting {
        fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
            self.0.stat(digest)
        }

        fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
            self.0.open(digest, offset)
        }
    }

    impl BlobStore for Counting {
        fn holds(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError> {
            self.0.holds(descriptor, rehash)
        }

        fn must_hash(&self, descriptor: &Descriptor, rehash: bool) -> bool {
            self.0.must_hash(descriptor, rehash)
        }

        fn take(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), WriteError> {
            self.0.take(descriptor, bytes)
        }

        fn sink(self: Arc<Self>, limits: Limits, slots: Option<IdleSlots>) -> Arc<dyn BlobSink> {
            Arc::new(LocalSink::new(self, limits, slots))
        }

        fn name(&self, _: &mut dyn Iterator<Item = LockEntry>) -> Result<(), WriteError> {
            Ok(())
        }
    }

    impl LocalStore for Counting {
        fn begin(
            &self,
            descriptor: &Descriptor,
            apart: bool,
        ) -> Result<Option<(VerifiedWriter, Vec<ByteRange>)>, WriteError> {
            self.1.fetch_add(1, Ordering::Relaxed);
            LocalStore::begin(&self.0, descriptor, apart)
        }
    }

    #[tokio::test]
    async fn what_is_there_is_hashed_once_however_often_the_source_breaks_off() {
        let cuts: Vec<_> = (1..=11).map(|end| (CONTENT, end)).collect();
        for parallel_from in [0, 100] {
            let dir = tempfile::tempdir().unwrap();
            let disk = Arc::new(Counting(
                DiskStore::open(dir.path()).unwrap(),
                AtomicUsize::new(0),
            ));
            let slots = IdleSlots::new(Arc::new(Semaphore::new(0)), watch::channel(false).1);
            let limits = Limits {
                parallel_from,
                ..Limits::default()
            };
            let outcome = bring(
                &cuts,
                Arc::new(LocalSink::new(disk.clone(), limits, Some(slots))),
            )
            .await;
            assert_eq!(
                (outcome.brought.unwrap(), outcome.offsets),
                (TransferOutcome::Received(11), (0..11).collect())
            );
            assert_eq!(disk.1.load(Ordering::Relaxed), 1, "from {parallel_from}");
        }
    }

    #[tokio::test]
    async fn wrong_bytes_are_asked_for_once_more_and_ranges_are_blamed_first() {
        let sink = || Arc::new(Whole::default());
        let wrong = ("hello_world", 11);
        let outcome = bring(&[wrong, wrong, (CONTENT, 11)], sink()).await;
        assert_eq!(outcome.brought.unwrap_err().why.kind, ErrorKind::Invalid);
        assert_eq!((outcome.offsets, outcome.distrusted), (vec![0, 0], 0));
        let outcome = bring(&[(CONTENT, 3), wrong, wrong, (CONTENT, 11)], sink()).await;
        assert_eq!(
            (outcome.brought.unwrap(), outcome.distrusted),
            (TransferOutcome::Received(33), 1)
        );
        assert_eq!(outcome.offsets, [0, 3, 0, 0]);
    }

    #[tokio::test]
    async fn attempts_of_the_sink_end_and_a_source_that_cannot_be_opened_is_final() {
        let whole = Whole {
            refuses: Arc::new(AtomicUsize::new(9)),
            ..Whole::default()
        };
        let outcome = bring(&[(CONTENT, 11); 9], Arc::new(whole.clone())).await;
        assert_eq!(outcome.brought.unwrap_err().side, TransferSide::Destination);
        assert_eq!(whole.begun.load(Ordering::Relaxed), 3);
        let outcome = bring(&[(CONTENT, 3)], Arc::new(Whole::default())).await;
        assert_eq!(
            (outcome.brought.unwrap_err().why.kind, outcome.offsets),
            (ErrorKind::NotFound, vec![0, 3])
        );
    }
}
