//! The record of an upload under way: what any process, on any machine, needs to resume it at its last part.

use super::keys;
use crate::bucket::{Bucket, Condition, Put};
use crate::http::{Error, ErrorKind};
use crate::model::{Descriptor, Hasher};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

/// The least size of a part, in bytes. S3 takes no smaller ones, but the last.
pub(super) const PART: u64 = 8 << 20;
/// The most parts that an upload may have (S3).
const PARTS: u64 = 10_000;
/// The most that a record may have, in bytes.
const MOST: u64 = 4 << 20;

/// An upload, as far as it came.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Record {
    /// What the object store calls the upload.
    pub upload: String,
    /// Size of all parts but the last, in bytes.
    pub part_size: u64,
    /// What the object store calls the parts that are there, from the first on without a gap.
    pub parts: Vec<String>,
    /// The state of the hash after these parts, in base64.
    pub hash: String,
}

impl Record {
    /// The record of the upload of `blob`, which is begun where there is none.
    pub(super) async fn open(bucket: &Bucket, blob: &Descriptor) -> Result<Record, Error> {
        let key = keys::upload(&blob.digest);
        if let Some(record) = read(bucket, &key, blob).await? {
            return Ok(record);
        }
        let most_parts = blob.size.div_ceil(PARTS).next_multiple_of(1 << 20);
        let record = Record {
            upload: bucket.begin_parts(&keys::blob(&blob.digest)).await?,
            part_size: PART.max(most_parts),
            parts: Vec::new(),
            hash: hash_text(&Hasher::new(blob.digest.algorithm())),
        };
        match bucket.put(&key, record.to_bytes()?, &Condition::IfAbsent).await? {
            Put::Written => Ok(record),
            Put::Refused => {
                // another process was first: both go on with its upload
                bucket.abort_parts(&keys::blob(&blob.digest), &record.upload).await?;
                Ok(read(bucket, &key, blob).await?.unwrap_or(record))
            }
        }
    }

    /// The hash of the parts that are there.
    pub(super) fn hasher(&self, blob: &Descriptor) -> Option<Hasher> {
        Hasher::resume(blob.digest.algorithm(), &BASE64.decode(&self.hash).ok()?)
    }

    /// Gives up the upload whose record stands at `key`.
    pub(super) async fn end(bucket: &Bucket, key: &str) -> Result<(), Error> {
        let blob = key.replacen("uploads", "blobs", 1);
        if let Some((bytes, _)) = bucket.get(key, MOST).await?
            && let Ok(record) = serde_json::from_slice::<Record>(&bytes)
        {
            bucket.abort_parts(&blob, &record.upload).await?;
        }
        bucket.delete(vec![key.to_owned()]).await
    }

    fn to_bytes(&self) -> Result<bytes::Bytes, Error> {
        let bytes = serde_json::to_vec(self);
        Ok(bytes.map_err(|error| Error::new(ErrorKind::Local, error.to_string()))?.into())
    }

    /// Writes it again.
    pub(super) async fn save(&self, bucket: &Bucket, blob: &Descriptor) -> Result<(), Error> {
        bucket.put(&keys::upload(&blob.digest), self.to_bytes()?, &Condition::Always).await.map(drop)
    }

    /// Gives the upload up: the next one begins anew.
    pub(super) async fn discard(&self, bucket: &Bucket, blob: &Descriptor) -> Result<(), Error> {
        bucket.delete(vec![keys::upload(&blob.digest)]).await?;
        bucket.abort_parts(&keys::blob(&blob.digest), &self.upload).await
    }
}

/// The state of a hash as a record has it.
pub(super) fn hash_text(hasher: &Hasher) -> String {
    BASE64.encode(hasher.state())
}

/// The record at `key`, if it is one that can be resumed.
async fn read(bucket: &Bucket, key: &str, blob: &Descriptor) -> Result<Option<Record>, Error> {
    let Some((bytes, _)) = bucket.get(key, MOST).await? else { return Ok(None) };
    let record: Option<Record> = serde_json::from_slice(&bytes).ok();
    let fits = |record: &Record| {
        // the last part is shorter than the others
        let most = blob.size.div_ceil(record.part_size.max(1));
        record.part_size >= PART && record.parts.len() as u64 <= most && record.hasher(blob).is_some()
    };
    let record = record.filter(fits);
    if record.is_none() {
        bucket.delete(vec![key.to_owned()]).await?;
    }
    Ok(record)
}
