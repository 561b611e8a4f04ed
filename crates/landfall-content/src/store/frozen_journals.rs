//! Journals as earlier releases wrote them: the files of a store on disk, and the record of an
//! upload to an object store. Each is resumed at the byte that it names. The journal of a bundle in
//! progress is in the module of the same name in `landfall-bundle`.

use super::{BucketStore, DiskStore, StoreTimeouts};
use crate::bucket::PutMode;
use crate::bucket::emulator::Emulator;
use crate::{
    BlobRead, BlobStore, EntryPart, FileStamp, LocalStore, OpenedPart, PartOrigin, PartSource,
    Transfer, TransferOutcome,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use landfall_http::{Activity, HttpError, UnlimitedSlot};
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, Digest, Limits};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The digest of `hello world`.
const HELLO: &str = "sha256:b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";

/// The state of SHA-256 after 8 MiB of zeros, in base64.
const HASH: &str = "eJf0Vi9v3nQ4JmBI79JOO5dSzZ8WP0m8BnYXGrQ9UREAAAIAAAAAAAAAAAAAAAAAAAAAAAAA\
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn hello() -> Descriptor {
    Descriptor {
        digest: HELLO.parse().unwrap(),
        size: 11,
        media_type: "x/y".into(),
    }
}

/// Writes a file of a store whose folders do not exist yet.
fn write(dir: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn verified_blobs_are_not_hashed_again() {
    let dir = tempfile::tempdir().unwrap();
    let blob = HELLO.replace("sha256:", "blobs/sha256/");
    // wrong bytes, which nobody notices without hashing them
    write(dir.path(), &blob, "hello World");
    let FileStamp { inode, mtime, size } = FileStamp::at(&dir.path().join(blob)).unwrap();
    let (seconds, nanoseconds) = mtime;
    let cut = &HELLO[..30];
    write(
        dir.path(),
        ".landfall/verified",
        format!("{HELLO} 1 2 3 4\n{HELLO} {inode} {seconds} {nanoseconds} {size}\n{cut}"),
    );
    let store = DiskStore::open(dir.path()).unwrap();
    assert!(store.has(&hello().digest, 11).unwrap());
    assert!(!store.rehash(&hello().digest, 11).unwrap());
}

#[test]
fn a_partial_blob_is_resumed_with_and_without_its_ranges() {
    let partial = HELLO.replace("sha256:", ".landfall/partial/sha256-");
    // the last line was cut off; the ranges are in the order in which they were written
    let ranges = "0 0\n0 3\n8 10\n3 5\n10 11\n5 ";
    for (keep_ranges, journal, content, expected) in [
        (true, Some(ranges), "hello\0\0\0rld", (5, vec![(8, 11)])),
        (false, Some(ranges), "hello\0\0\0rld", (5, vec![])),
        (true, None, "hello wo", (8, vec![])),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &partial, content);
        if let Some(journal) = journal {
            write(dir.path(), &format!("{partial}.ranges"), journal);
        }
        let store = DiskStore::open(dir.path()).unwrap();
        let (mut writer, ranges) = store.begin(&hello(), keep_ranges).unwrap().unwrap();
        assert_eq!((writer.offset(), ranges.clone()), expected);
        let end = ranges.first().map_or(11, |range| range.0) as usize;
        writer
            .write(&b"hello world"[writer.offset() as usize..end])
            .unwrap();
        writer.absorb(11).unwrap();
        writer.commit().unwrap();
        assert_eq!(store.read(&hello()).unwrap(), b"hello world");
        assert!(!dir.path().join(&partial).exists());
        assert!(!dir.path().join(format!("{partial}.ranges")).exists());
    }
}

/// A source that records the offsets at which it is opened.
struct RecordedSource(Bytes, Mutex<Vec<u64>>);

impl PartSource for RecordedSource {
    fn open<'a>(
        &'a self,
        _: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        self.1.lock().unwrap().push(offset);
        let rest = futures_util::stream::iter([Ok(self.0.slice(offset as usize..))]);
        let opened = OpenedPart::unchecked(offset, Box::pin(rest));
        Box::pin(std::future::ready(Ok(opened)))
    }
}

#[tokio::test]
async fn an_upload_to_an_object_store_is_resumed_after_its_parts() {
    let bucket = Emulator::default().bucket(0, Arc::new(|_| Box::pin(async { true })));
    let content = Bytes::from([&vec![0; 8 << 20][..], b"end"].concat());
    let descriptor = Descriptor {
        digest: Digest::sha256(&content),
        size: content.len() as u64,
        media_type: "x/y".into(),
    };
    let hex = "82c9a667a2fdb3cbdbe845ce1234fdf09fff9e8fed500ad88c68d4dae0794d8c";
    assert_eq!(descriptor.digest.hex(), hex);
    let key = format!("blobs/sha256/{hex}");
    let upload = bucket.begin_parts(&key).await.unwrap();
    let first = content.slice(..8 << 20);
    let part = bucket.put_part(&key, &upload, 0, first).await.unwrap();
    let record = format!(
        "{{\"owner\":\"0123456789abcdef\",\"beats\":7,\"upload\":\"{upload}\",\
             \"partSize\":8388608,\"parts\":[{part:?}],\"hash\":\"{HASH}\"}}"
    );
    bucket
        .put(
            &format!("uploads/sha256/{hex}"),
            record.into(),
            &PutMode::Overwrite,
        )
        .await
        .unwrap();

    let timeouts = StoreTimeouts {
        heartbeat: Duration::from_millis(5),
        lease: Duration::from_millis(10),
        ..StoreTimeouts::new(Duration::from_secs(1))
    };
    let store = Arc::new(BucketStore::open(bucket.clone(), timeouts).await.unwrap());
    let source = Arc::new(RecordedSource(content, Mutex::default()));
    let transfer = Transfer {
        source: source.clone(),
        sink: store.sink(Limits::default(), None, None),
        limits: Limits::default(),
        progress: Arc::new(SilentProgress),
        activity: Activity::default(),
    };
    let part = EntryPart {
        descriptor,
        origin: PartOrigin::Url("u".into()),
    };
    let outcome = transfer.run(&part, Arc::new(UnlimitedSlot)).await;
    assert_eq!(outcome.unwrap(), TransferOutcome::Received(3));
    assert_eq!(*source.1.lock().unwrap(), [8 << 20]);
    let object = bucket.head(&key).await.unwrap().unwrap();
    assert_eq!(object.size, (8 << 20) + 3);
}
