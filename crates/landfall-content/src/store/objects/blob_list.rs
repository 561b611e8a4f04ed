//! A list of content as an object: a line each of digest and size, compressed, called by its own
//! digest.

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

/// The most that a list may have, in bytes as they stand there, and as they are read.
const MOST: (u64, u64) = (256 << 20, 1 << 30);
/// Lists that are read at once.
const AT_ONCE: usize = 16;

/// Content by its digest, with its size in bytes.
pub(super) type Contents = BTreeMap<Digest, u64>;

/// A list that was read.
pub(super) struct List {
    pub key: String,
    pub contents: Contents,
    pub written: SystemTime,
}

/// Writes a list into `folder`, unless it is empty. Returns its key.
///
/// # Errors
/// When the object store does not take it.
pub(super) async fn write(
    bucket: &Bucket,
    folder: &str,
    contents: &Contents,
) -> Result<Option<String>, HttpError> {
    if contents.is_empty() {
        return Ok(None);
    }
    let (key, packed) = packed(contents, |digest| keys::named(folder, digest))?;
    bucket.put(&key, packed, &PutCondition::Always).await?;
    Ok(Some(key))
}

/// A list as an object, and the key that `key` gives one with its digest.
pub(super) fn packed(
    contents: &Contents,
    key: impl Fn(&Digest) -> String,
) -> Result<(String, Bytes), HttpError> {
    let mut text = String::new();
    for (digest, size) in contents {
        let _ = writeln!(text, "{digest} {size}");
    }
    let packed = zstd::encode_all(text.as_bytes(), 3);
    let packed = packed.map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?;
    Ok((key(&Digest::sha256(text.as_bytes())), packed.into()))
}

/// A list of content that is there, as an object, and its key.
///
/// # Errors
/// When it cannot be compressed.
#[cfg(any(test, feature = "testkit"))]
pub fn index_list(
    contents: impl IntoIterator<Item = (Digest, u64)>,
) -> Result<(String, Bytes), HttpError> {
    packed(&contents.into_iter().collect(), |digest| {
        keys::named(keys::INDEX, digest)
    })
}

/// All lists of `folder`. One that is deleted meanwhile is left out.
///
/// # Errors
/// When the object store does not answer, or a list is damaged.
pub(super) async fn read_all(
    bucket: &Bucket,
    folder: &'static str,
) -> Result<Vec<List>, HttpError> {
    read_each(bucket, list_all(bucket, folder).await?).await
}

/// The objects of `folder` that are lists by their keys.
pub(super) async fn list_all(
    bucket: &Bucket,
    folder: &'static str,
) -> Result<Vec<BucketObject>, HttpError> {
    let is_list = |object: &BucketObject| std::future::ready(keys::hex_of(&object.key).is_some());
    bucket.list(folder).try_filter(is_list).try_collect().await
}

/// As [`read_all`], of lists that were listed.
pub(super) async fn read_each(
    bucket: &Bucket,
    objects: Vec<BucketObject>,
) -> Result<Vec<List>, HttpError> {
    let objects = futures_util::stream::iter(objects.into_iter().map(Ok));
    let lists = objects
        .map_ok(|object| read(bucket, object))
        .try_buffer_unordered(AT_ONCE);
    lists
        .try_filter_map(|list| std::future::ready(Ok(list)))
        .try_collect()
        .await
}

async fn read(bucket: &Bucket, object: BucketObject) -> Result<Option<List>, HttpError> {
    let Some((packed, _)) = bucket.get(&object.key, MOST.0).await? else {
        return Ok(None);
    };
    let wrong = || {
        let words = "it is no list of landfall's, or a damaged one; delete it: what it lists is looked for one by one then";
        HttpError::new(ErrorKind::Invalid, words).about(bucket.shown(&object.key))
    };
    let mut text = String::new();
    let unpacked = zstd::Decoder::new(&packed[..])
        .and_then(|read| read.take(MOST.1).read_to_string(&mut text));
    unpacked.map_err(|_| wrong())?;
    if keys::hex_of(&object.key) != Some(&Digest::sha256(text.as_bytes()).hex()) {
        return Err(wrong());
    }
    let line = |line: &str| {
        let (digest, size) = line.split_once(' ')?;
        Some((digest.parse().ok()?, size.parse().ok()?))
    };
    let contents: Option<Contents> = text.lines().map(line).collect();
    let contents = contents.ok_or_else(wrong)?;
    Ok(Some(List {
        key: object.key,
        contents,
        written: object.modified,
    }))
}
