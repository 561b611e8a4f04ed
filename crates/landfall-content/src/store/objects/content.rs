//! Reads blobs of the store in an object store.

use super::bucket_store;
use super::bucket_store::{BucketStore, unreadable};
use crate::bucket::{Bucket, BucketObject, OpenObject, PutMode, block_on};
use crate::{BlobRead, ContentError, FileStamp, VerifiedRead};
use bytes::Bytes;
use futures_util::TryStreamExt;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Digest, DigestCheckedReader};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, Read};
use std::time::SystemTime;

impl BlobRead for BucketStore {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        let this = self.clone();
        let wanted = digest.clone();
        block_on(async move { this.look_up(&wanted).await })
            .map_err(|error| unreadable(digest, error))
    }

    /// A blob that is read from byte 0 is hashed, and its last bytes are held back if the digest is
    /// wrong. A read from another offset is protected only by the object store's own checksums.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let opened = OpenObject::read(self.bucket(), &bucket_store::blob(digest), offset);
        let (reader, size) = match opened {
            // a list has the blob although it is absent: the next run must not trust that
            Err(error)
                if error.kind == ErrorKind::NotFound && self.known_size(digest).is_some() =>
            {
                let this = self.clone();
                let missing = digest.clone();
                block_on(async move { this.condemn([missing]).await })
                    .map_err(|error| unreadable(digest, error))?;
                return Err(unreadable(digest, error));
            }
            opened => opened.map_err(|error| unreadable(digest, error))?,
        };
        // the digest is over the whole blob, so a read from the middle cannot be verified
        if offset > 0 {
            return Ok(Box::new(reader));
        }
        let store = self.clone();
        let wanted = digest.clone();
        Ok(Box::new(DigestCheckedReader::new(
            reader,
            digest,
            size,
            move |_| wrong_bytes(&store, &wanted),
        )))
    }
}

/// Condemns a blob that has other bytes, and returns the error for it.
fn wrong_bytes(store: &BucketStore, digest: &Digest) -> io::Error {
    let condemned = (store.clone(), digest.clone());
    // a pull trusts the lists, so it notices the damage only if the blob was condemned
    let hint = match block_on(async move { condemned.0.condemn([condemned.1]).await }) {
        Ok(()) => "`landfall pull` writes it again",
        Err(_) => "`landfall pull --rehash` writes it again",
    };
    let message = format!("{digest}: the object store has other bytes under this digest; {hint}");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

impl VerifiedRead for BucketStore {
    /// Returns no stamps, because no file holds the content. So each process verifies a blob once.
    fn file_stamps(&self, _digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        Ok(Vec::new())
    }
}

/// The largest compressed list that is read, in bytes.
const MAX_COMPRESSED: u64 = 256 << 20;
/// The limit of a decompressed list in bytes. A longer list is cut off, so its digest is wrong.
const MAX_TEXT: u64 = 1 << 30;
/// How many lists are read at the same time.
const CONCURRENT_READS: usize = 16;

/// The sizes of blobs in bytes, by digest.
pub(super) type BlobSizes = BTreeMap<Digest, u64>;

/// A list of blobs that was read.
pub(super) struct BlobList {
    pub key: String,
    pub contents: BlobSizes,
    pub written: SystemTime,
}

/// Writes a list to `folder` and returns its key, or `None` if the list is empty.
pub(super) async fn write(
    bucket: &Bucket,
    folder: &str,
    contents: &BlobSizes,
) -> Result<Option<String>, HttpError> {
    if contents.is_empty() {
        return Ok(None);
    }
    let (key, compressed) = compress(contents, |digest| bucket_store::named(folder, digest))?;
    // the key is the digest, so an existing object has the same content
    bucket.put(&key, compressed, &PutMode::Overwrite).await?;
    Ok(Some(key))
}

/// Compresses a list. Returns its key, which the function `key` forms from the digest of the text,
/// and the compressed bytes.
pub(super) fn compress(
    contents: &BlobSizes,
    key: impl Fn(&Digest) -> String,
) -> Result<(String, Bytes), HttpError> {
    let mut text = String::new();
    for (digest, size) in contents {
        let _ = writeln!(text, "{digest} {size}");
    }
    let compressed = zstd::encode_all(text.as_bytes(), 3);
    let compressed =
        compressed.map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?;
    Ok((key(&Digest::sha256(text.as_bytes())), compressed.into()))
}

/// Returns the key and the compressed bytes of a list of present blobs.
///
/// # Errors
/// If the list cannot be compressed.
#[cfg(any(test, feature = "testkit"))]
pub fn index_list(
    contents: impl IntoIterator<Item = (Digest, u64)>,
) -> Result<(String, Bytes), HttpError> {
    compress(&contents.into_iter().collect(), |digest| {
        bucket_store::named(bucket_store::INDEX, digest)
    })
}

/// Reads all lists in `folder`. Lists that are deleted meanwhile are skipped.
pub(super) async fn read_all(
    bucket: &Bucket,
    folder: &'static str,
) -> Result<Vec<BlobList>, HttpError> {
    read_each(bucket, list_all(bucket, folder).await?).await
}

/// Returns the objects in `folder` that are lists according to their keys.
pub(super) async fn list_all(
    bucket: &Bucket,
    folder: &'static str,
) -> Result<Vec<BucketObject>, HttpError> {
    bucket
        .list(folder)
        .try_filter(|object| std::future::ready(bucket_store::hex_of(&object.key).is_some()))
        .try_collect()
        .await
}

/// Reads these lists. Lists that are deleted meanwhile are skipped.
pub(super) async fn read_each(
    bucket: &Bucket,
    objects: Vec<BucketObject>,
) -> Result<Vec<BlobList>, HttpError> {
    let objects = futures_util::stream::iter(objects.into_iter().map(Ok));
    let lists = objects
        .map_ok(|object| read(bucket, object))
        .try_buffer_unordered(CONCURRENT_READS);
    lists
        .try_filter_map(|list| std::future::ready(Ok(list)))
        .try_collect()
        .await
}

/// Decompresses and parses a list. Returns `None` if it is damaged or its key has another digest.
fn parse(key: &str, compressed: &[u8]) -> Option<BlobSizes> {
    let mut text = String::new();
    // limited, because a small object may decompress to any size
    zstd::Decoder::new(compressed)
        .and_then(|read| read.take(MAX_TEXT).read_to_string(&mut text))
        .ok()?;
    if bucket_store::hex_of(key) != Some(&Digest::sha256(text.as_bytes()).hex()) {
        return None;
    }
    text.lines()
        .map(|line| {
            let (digest, size) = line.split_once(' ')?;
            Some((digest.parse().ok()?, size.parse().ok()?))
        })
        .collect()
}

async fn read(bucket: &Bucket, object: BucketObject) -> Result<Option<BlobList>, HttpError> {
    // deleted since it was listed, for example by a `gc`
    let Some((compressed, _)) = bucket.get(&object.key, MAX_COMPRESSED).await? else {
        return Ok(None);
    };
    let contents = parse(&object.key, &compressed).ok_or_else(|| {
        // a run that does not see what a `gc` is deleting would rely on those blobs
        let advice = if object.key.starts_with(bucket_store::DELETING) {
            "do not delete it: a `landfall gc` may be deleting its blobs; another `landfall gc` \
             removes it after 30 minutes"
        } else {
            "delete it: its blobs are then looked up one by one"
        };
        let words = format!("it is damaged or not a list of landfall; {advice}");
        HttpError::new(ErrorKind::Invalid, words).about(bucket.url(&object.key))
    })?;
    Ok(Some(BlobList {
        key: object.key,
        contents,
        written: object.modified,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::bucket_store::StoreTimeouts;
    use super::*;
    use crate::bucket::emulator::Emulator;
    use std::sync::Arc;
    use std::time::Duration;

    /// An object store with a blob and a list of it, and the blob.
    fn sample() -> (Emulator, Bucket, Digest, Vec<u8>) {
        let emulator = Emulator::default();
        let bucket = emulator.bucket(0, Arc::new(|_| Box::pin(async { true })));
        let content = b"hello world ".repeat(1000);
        let digest = Digest::sha256(&content);
        emulator.put(&digest.layout_path(), content.clone());
        let (key, list) = index_list([(digest.clone(), content.len() as u64)]).unwrap();
        emulator.put(&key, list);
        (emulator, bucket, digest, content)
    }

    fn open(bucket: Bucket) -> BucketStore {
        let timeouts = StoreTimeouts::new(Duration::from_secs(1));
        block_on(async move { BucketStore::open(bucket, timeouts).await }).unwrap()
    }

    #[test]
    fn a_blob_whose_responses_break_off_is_read_to_its_end() {
        let (emulator, bucket, digest, content) = sample();
        let store = open(bucket);
        for offset in [0, 5000] {
            emulator.cut_responses(5);
            let mut read = Vec::new();
            let mut reader = store.open(&digest, offset).unwrap();
            reader.read_to_end(&mut read).unwrap();
            assert!(read == content[offset as usize..], "{offset}");
        }
        // an object that is replaced meanwhile is not continued
        emulator.cut_responses(1);
        let mut reader = store.open(&digest, 0).unwrap();
        reader.read_exact(&mut [0; 10]).unwrap();
        emulator.put(&digest.layout_path(), vec![b'x'; content.len()]);
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("was replaced"), "{error}");
    }

    #[test]
    fn lists_whose_responses_break_off_are_requested_again() {
        let (emulator, bucket, digest, content) = sample();
        for cuts in 1..4 {
            emulator.cut_responses(cuts);
            let store = open(bucket.clone());
            assert_eq!(store.known_size(&digest), Some(content.len() as u64));
        }
    }

    #[tokio::test]
    async fn only_damaged_lists_that_protect_nothing_may_be_deleted() {
        let bucket = Bucket::in_memory();
        for (folder, is_safe) in [
            (bucket_store::INDEX, true),
            (bucket_store::CONDEMNED, true),
            (bucket_store::DELETING, false),
        ] {
            let key = bucket_store::named_apart(folder, &Digest::sha256(b"list"));
            let damaged = Bytes::from_static(b"damaged");
            bucket
                .put(&key, damaged, &PutMode::Overwrite)
                .await
                .unwrap();
            let error = read_all(&bucket, folder).await.err().unwrap().to_string();
            assert_eq!(error.contains("; delete it"), is_safe, "{error}");
            assert_eq!(error.contains("; do not delete it"), !is_safe, "{error}");
        }
    }
}
