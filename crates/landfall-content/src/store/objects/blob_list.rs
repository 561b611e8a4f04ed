//! Lists of blobs as objects: compressed lines of digest and size, named by the digest of the
//! uncompressed text.

use super::keys;
use crate::bucket::{Bucket, BucketObject, PutCondition};
use bytes::Bytes;
use futures_util::TryStreamExt;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::Digest;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::time::SystemTime;

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
    let (key, compressed) = compress(contents, |digest| keys::named(folder, digest))?;
    // the key is the digest, so an existing object has the same content
    bucket.put(&key, compressed, &PutCondition::Always).await?;
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
        keys::named(keys::INDEX, digest)
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
        .try_filter(|object| std::future::ready(keys::hex_of(&object.key).is_some()))
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
    if keys::hex_of(key) != Some(&Digest::sha256(text.as_bytes()).hex()) {
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
        let advice = if object.key.starts_with(keys::DELETING) {
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
    use super::*;

    #[tokio::test]
    async fn only_damaged_lists_that_protect_nothing_may_be_deleted() {
        let bucket = Bucket::in_memory();
        for (folder, is_safe) in [
            (keys::INDEX, true),
            (keys::CONDEMNED, true),
            (keys::DELETING, false),
        ] {
            let key = keys::named_apart(folder, &Digest::sha256(b"list"));
            let damaged = Bytes::from_static(b"damaged");
            bucket
                .put(&key, damaged, &PutCondition::Always)
                .await
                .unwrap();
            let error = read_all(&bucket, folder).await.err().unwrap().to_string();
            assert_eq!(error.contains("; delete it"), is_safe, "{error}");
            assert_eq!(error.contains("; do not delete it"), !is_safe, "{error}");
        }
    }
}
