//! Tests of transfers: resumption, wrong bytes, limits of attempts, and several URLs.

use super::*;
use crate::store::DiskStore;
use crate::{
    BlobRead, FailedAttempt, IdleSlots, LocalSink, LocalSource, MemoryBlobs, OpenedPart,
    PartOrigin, Watchdog, WriteError,
};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_http::{ErrorKind, HttpError, UnlimitedSlot};
use landfall_model::report::{SilentProgress, TransferSide};
use landfall_model::{Descriptor, Digest};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CONTENT: &str = "hello world";

/// Returns the scripted responses in order. Each has its content, and the offset at which it breaks
/// off.
struct ScriptedSource {
    responses: Mutex<VecDeque<(&'static str, usize)>>,
    offsets: Mutex<Vec<u64>>,
    distrust_count: Arc<AtomicUsize>,
}

impl PartSource for ScriptedSource {
    fn open<'a>(
        &'a self,
        _: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        self.offsets.lock().unwrap().push(offset);
        let response = self.responses.lock().unwrap().pop_front();
        Box::pin(async move {
            let gone = || HttpError::new(ErrorKind::NotFound, "gone");
            let (content, end) = response.ok_or_else(gone)?;
            // a server sends the whole content if the offset is at or after its end
            let start = if offset < content.len() as u64 {
                offset
            } else {
                0
            };
            let mut pieces = vec![Ok(Bytes::from(&content[start as usize..end]))];
            if end < content.len() {
                pieces.push(Err(HttpError::new(ErrorKind::Network, "cut")));
            }
            let opened = OpenedPart::unchecked(start, futures_util::stream::iter(pieces).boxed());
            let distrust_count = self.distrust_count.clone();
            Ok(match start {
                0 => opened,
                _ => opened.on_corrupt(move || {
                    distrust_count.fetch_add(1, Ordering::Relaxed);
                }),
            })
        })
    }
}

/// A sink that cannot resume, and refuses the first `refuses` attempts.
#[derive(Clone, Default)]
struct UnresumableSink {
    refuses: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl BlobSink for UnresumableSink {
    fn write<'a>(
        &'a self,
        opener: &'a Arc<PartOpener>,
        _: bool,
    ) -> BoxFuture<'a, Result<bool, FailedAttempt>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
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
                let error =
                    TransferError::new(TransferSide::Destination, ErrorKind::Status(500), "full");
                return Err(FailedAttempt::new(error, FailureCause::Sink));
            }
            Ok(true)
        })
    }
}

struct TransferRun {
    result: Result<TransferOutcome, TransferError>,
    offsets: Vec<u64>,
    distrust_count: usize,
}

/// A part whose content is [`CONTENT`].
fn part_from(origin: PartOrigin) -> EntryPart {
    EntryPart {
        descriptor: Descriptor {
            digest: Digest::sha256(CONTENT.as_bytes()),
            size: CONTENT.len() as u64,
            media_type: "x/y".into(),
        },
        origin,
    }
}

async fn transfer(responses: &[(&'static str, usize)], sink: Arc<dyn BlobSink>) -> TransferRun {
    let source = Arc::new(ScriptedSource {
        responses: Mutex::new(responses.iter().copied().collect()),
        offsets: Mutex::default(),
        distrust_count: Arc::default(),
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
        activity: Activity::default(),
    };
    let part = part_from(PartOrigin::Url("u".into()));
    let result = transfer.run(&part, Arc::new(UnlimitedSlot)).await;
    let offsets = source.offsets.lock().unwrap().clone();
    TransferRun {
        result,
        offsets,
        distrust_count: source.distrust_count.load(Ordering::Relaxed),
    }
}

#[tokio::test]
async fn a_source_is_resumed_whether_the_sink_can_resume_or_not() {
    let cut = [(CONTENT, 3), (CONTENT, 5), (CONTENT, 11)];
    let whole = UnresumableSink::default();
    let run = transfer(&cut, Arc::new(whole.clone())).await;
    assert_eq!(run.result.unwrap(), TransferOutcome::Received(11));
    assert_eq!(
        (run.offsets, whole.begun.load(Ordering::Relaxed)),
        (vec![0, 3, 5], 1)
    );
    assert_eq!(*whole.taken.lock().unwrap(), CONTENT.as_bytes());

    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(DiskStore::open(dir.path()).unwrap());
    let local = || Arc::new(LocalSink::new(disk.clone(), Limits::default(), None, None));
    let run = transfer(&cut, local()).await;
    assert_eq!(
        (run.result.unwrap(), run.offsets),
        (TransferOutcome::Received(11), vec![0, 3, 5])
    );
    assert_eq!(
        disk.stat(&Digest::sha256(CONTENT.as_bytes())).unwrap(),
        Some(11)
    );
    assert_eq!(
        transfer(&[], local()).await.result.unwrap(),
        TransferOutcome::AlreadyPresent
    );
}

/// A sink that counts how often a write begins. Each beginning hashes the partial blob.
struct CountingSink(LocalSink, AtomicUsize);

impl BlobSink for CountingSink {
    fn write<'a>(
        &'a self,
        opener: &'a Arc<PartOpener>,
        in_order: bool,
    ) -> BoxFuture<'a, Result<bool, FailedAttempt>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.write(opener, in_order)
    }
}

#[tokio::test]
async fn a_partial_blob_is_hashed_once_however_often_the_source_breaks_off() {
    let cuts: Vec<_> = (1..=11).map(|end| (CONTENT, end)).collect();
    for parallel_from in [0, 100] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskStore::open(dir.path()).unwrap());
        let slots = crate::TransferSlots::for_uploads(1);
        // no slot is idle
        let _held = slots.acquire(0, &Arc::default()).await;
        let slots = IdleSlots::new(slots);
        let limits = Limits {
            parallel_from,
            ..Limits::default()
        };
        let sink = LocalSink::new(disk, limits, Some(slots), None);
        let sink = Arc::new(CountingSink(sink, AtomicUsize::new(0)));
        let run = transfer(&cuts, sink.clone()).await;
        assert_eq!(
            (run.result.unwrap(), run.offsets),
            (TransferOutcome::Received(11), (0..11).collect())
        );
        assert_eq!(sink.1.load(Ordering::Relaxed), 1, "from {parallel_from}");
    }
}

/// Three mirrors: `a` lacks the part, `b` cannot be reached, `c` has it.
#[derive(Default)]
struct Mirrors {
    opened: Mutex<Vec<String>>,
}

impl PartSource for Mirrors {
    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        let PartOrigin::Url(url) = &part.origin else {
            unreachable!("a transfer opens one URL at a time");
        };
        self.opened.lock().unwrap().push(url.clone());
        let opened = match url.as_str() {
            "a" => Err(HttpError::new(ErrorKind::NotFound, "gone")),
            "b" => Err(HttpError::new(ErrorKind::Network, "unreachable")),
            _ => {
                let content = Ok(Bytes::from(CONTENT));
                let stream = futures_util::stream::iter([content]).boxed();
                Ok(OpenedPart::unchecked(offset, stream))
            }
        };
        Box::pin(std::future::ready(opened))
    }
}

/// A sink on a disk that is full from the second write on.
#[derive(Default)]
struct FullDiskSink(UnresumableSink);

impl BlobSink for FullDiskSink {
    fn write<'a>(
        &'a self,
        opener: &'a Arc<PartOpener>,
        in_order: bool,
    ) -> BoxFuture<'a, Result<bool, FailedAttempt>> {
        if self.0.begun.load(Ordering::Relaxed) == 0 {
            return self.0.write(opener, in_order);
        }
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = WriteError::io("write", "store".as_ref(), full);
        Box::pin(std::future::ready(Err(error.into())))
    }
}

async fn transfer_from_mirrors(
    urls: &[&str],
    sink: Arc<dyn BlobSink>,
) -> (Result<TransferOutcome, TransferError>, String) {
    let source = Arc::new(Mirrors::default());
    let transfer = Transfer {
        source: source.clone(),
        sink,
        limits: Limits {
            attempts: 1,
            ..Limits::default()
        },
        progress: Arc::new(SilentProgress),
        activity: Activity::default(),
    };
    let urls = urls.iter().map(|url| (*url).to_owned()).collect();
    let part = part_from(PartOrigin::Urls(urls));
    let result = transfer.run(&part, Arc::new(UnlimitedSlot)).await;
    let opened = source.opened.lock().unwrap().concat();
    (result, opened)
}

#[tokio::test]
async fn the_next_url_is_tried_only_if_a_url_lacks_the_part() {
    let sink = || Arc::new(UnresumableSink::default());
    let (result, opened) = transfer_from_mirrors(&["a", "c", "b"], sink()).await;
    assert_eq!(result.unwrap(), TransferOutcome::Received(11));
    assert_eq!(opened, "ac");

    let (result, opened) = transfer_from_mirrors(&["a", "b", "c"], sink()).await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.why.kind, opened.as_str()),
        (ErrorKind::Network, "ab")
    );
    let text = error.to_string();
    assert!(
        text.contains("unreachable") && text.contains("gone"),
        "{text}"
    );

    let (result, opened) = transfer_from_mirrors(&["a", "c"], Arc::<FullDiskSink>::default()).await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.side, opened.as_str()),
        (TransferSide::Destination, "a")
    );
    assert!(
        error.is_full() && error.to_string().contains("gone"),
        "{error}"
    );
}

#[tokio::test]
async fn wrong_bytes_are_fetched_once_more_or_twice_after_a_resumed_response() {
    let sink = || Arc::new(UnresumableSink::default());
    let wrong = ("hello_world", 11);
    let run = transfer(&[wrong, wrong, (CONTENT, 11)], sink()).await;
    assert_eq!(run.result.unwrap_err().why.kind, ErrorKind::Invalid);
    assert_eq!((run.offsets, run.distrust_count), (vec![0, 0], 0));
    let run = transfer(&[(CONTENT, 3), wrong, wrong, (CONTENT, 11)], sink()).await;
    assert_eq!(
        (run.result.unwrap(), run.distrust_count),
        (TransferOutcome::Received(33), 1)
    );
    assert_eq!(run.offsets, [0, 3, 0, 0]);
}

/// Content that is shorter than [`CONTENT`]. Responses with it end without an error.
const SHORT: (&str, usize) = ("hello", 5);

#[tokio::test]
async fn shorter_content_is_wrong_if_a_second_response_ends_at_the_same_byte() {
    let sink = || Arc::new(UnresumableSink::default());
    // one such response may be a truncated copy
    let run = transfer(&[SHORT, (CONTENT, 11)], sink()).await;
    assert_eq!(run.result.unwrap(), TransferOutcome::Received(11));
    assert_eq!(run.offsets, [0, 5]);
    let run = transfer(&[SHORT; 9], sink()).await;
    let error = run.result.unwrap_err();
    assert!(error.may_be_elsewhere(), "{error}");
    assert!(
        error.to_string().contains("expected 11 bytes, got 5"),
        "{error}"
    );
    assert_eq!(run.offsets, [0, 5, 0, 5]);
    // content that is cut with an error stays a failure of the network
    let run = transfer(&[(CONTENT, 5); 9], sink()).await;
    assert_eq!(run.result.unwrap_err().why.kind, ErrorKind::Network);
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_last_byte_is_no_failure() {
    let sink = UnresumableSink::default();
    let run = transfer(&[("hello world!", 11)], Arc::new(sink.clone())).await;
    assert_eq!(run.result.unwrap(), TransferOutcome::Received(11));
    assert_eq!(run.offsets, [0]);
    let run = transfer(&[("hello_world!", 11); 2], Arc::new(sink)).await;
    assert_eq!(run.result.unwrap_err().why.kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn attempts_of_the_sink_are_limited_and_a_part_that_is_not_found_is_final() {
    let whole = UnresumableSink {
        refuses: Arc::new(AtomicUsize::new(9)),
        ..UnresumableSink::default()
    };
    let run = transfer(&[(CONTENT, 11); 9], Arc::new(whole.clone())).await;
    assert_eq!(run.result.unwrap_err().side, TransferSide::Destination);
    assert_eq!(whole.begun.load(Ordering::Relaxed), 3);
    let run = transfer(&[(CONTENT, 3)], Arc::new(UnresumableSink::default())).await;
    assert_eq!(
        (run.result.unwrap_err().why.kind, run.offsets),
        (ErrorKind::NotFound, vec![0, 3])
    );
}

/// A transfer of [`CONTENT`] from memory to `sink`, which sends no requests.
fn local_transfer(sink: Arc<dyn BlobSink>, activity: &Activity) -> (Transfer, EntryPart) {
    let part = part_from(PartOrigin::Url("u".into()));
    let blobs = [(part.descriptor.digest.clone(), Bytes::from(CONTENT))];
    let transfer = Transfer {
        source: Arc::new(LocalSource(Arc::new(MemoryBlobs(blobs.into())))),
        sink,
        limits: Limits::default(),
        progress: Arc::new(SilentProgress),
        activity: activity.clone(),
    };
    (transfer, part)
}

#[tokio::test]
async fn a_transfer_that_waits_for_another_process_is_not_stuck() {
    let dir = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(dir.path()).unwrap();
    let activity = Activity::default();
    let sink = LocalSink::new(Arc::new(disk.clone()), Limits::default(), None, None);
    let (transfer, part) = local_transfer(Arc::new(sink), &activity);
    // its lock is like that of another process
    let other = disk.writer(&part.descriptor).unwrap().unwrap();
    let running = tokio::spawn(async move { transfer.run(&part, Arc::new(UnlimitedSlot)).await });
    let mut watchdog = Watchdog::new(activity, Duration::from_millis(80));
    tokio::select! {
        message = watchdog.wait_until_stuck() => panic!("{message}"),
        () = tokio::time::sleep(Duration::from_millis(400)) => {}
    }
    drop(other);
    let outcome = running.await.unwrap();
    assert_eq!(outcome.unwrap(), TransferOutcome::Received(11));
}

#[tokio::test]
async fn bytes_that_are_read_locally_count_as_activity() {
    let activity = Activity::default();
    let (transfer, part) = local_transfer(Arc::new(UnresumableSink::default()), &activity);
    let before = activity.snapshot();
    let outcome = transfer.run(&part, Arc::new(UnlimitedSlot)).await;
    assert_eq!(outcome.unwrap(), TransferOutcome::Received(11));
    assert_ne!(activity.snapshot(), before);
}
