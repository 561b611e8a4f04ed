//! The record of an upload under way: what any process, on any machine, needs to resume it at its
//! last part.
//!
//! One run at a time goes on with an upload, the owner that its record names: a part that two runs
//! sent has the name that only one of them knows. The owner writes the record again and again;
//! another run takes the upload over when it saw the same record for as long as
//! [`StoreTimeouts::lease`]. Owners write it only where it is the one that they wrote before.

use super::keys;
use super::store_timeouts::StoreTimeouts;
use crate::bucket::{Bucket, BucketObject, ObjectVersion, PutCondition, PutOutcome};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Descriptor, Hasher};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use tokio::time::sleep;

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
    /// Who goes on with it.
    #[serde(default)]
    owner: String,
    /// How often the owner has written it.
    #[serde(default)]
    beats: u64,
    /// What the object store calls the upload.
    pub upload: String,
    /// Size of all parts but the last, in bytes.
    pub part_size: u64,
    /// What the object store calls the parts that are there, from the first on without a gap.
    pub parts: Vec<String>,
    /// The state of the hash after these parts, in base64.
    pub hash: String,
}

/// The record of an upload that this process goes on with.
#[derive(Debug, Clone)]
pub(super) struct OwnRecord {
    pub record: Record,
    /// The record as this process wrote it last.
    version: ObjectVersion,
}

impl OwnRecord {
    /// The upload of `blob`, which is begun where there is none, or taken over from a run that has
    /// ended. While another run goes on with it, this waits. `None` when that has completed it:
    /// then another object than `before` stands there.
    pub(super) async fn open(
        bucket: &Bucket,
        blob: &Descriptor,
        before: Option<&BucketObject>,
        patience: StoreTimeouts,
    ) -> Result<Option<OwnRecord>, HttpError> {
        let key = keys::upload(&blob.digest);
        let mut seen: Option<(BucketObject, Instant)> = None;
        loop {
            let Some((bytes, object)) = bucket.get(&key, MOST).await? else {
                let found = bucket.look(&keys::blob(&blob.digest)).await?;
                if found.is_some_and(|found| found.size == blob.size && Some(&found) != before) {
                    return Ok(None);
                }
                if let Some(own) = begin(bucket, blob).await? {
                    return Ok(Some(own));
                }
                continue;
            };
            match &seen {
                Some((same, since)) if *same == object => {
                    if since.elapsed() >= patience.lease {
                        match take_over(bucket, blob, (&bytes, object.version())).await? {
                            Some(own) => return Ok(Some(own)),
                            None => seen = None,
                        }
                        continue;
                    }
                }
                _ => seen = Some((object, Instant::now())),
            }
            sleep(patience.beat).await;
        }
    }

    /// The hash of the parts that are there.
    pub(super) fn hasher(&self, blob: &Descriptor) -> Option<Hasher> {
        self.record.hasher(blob)
    }

    /// Writes it again. Fails with [`ErrorKind::NotFound`] where another run has taken the upload
    /// over.
    pub(super) async fn save(
        &mut self,
        bucket: &Bucket,
        blob: &Descriptor,
    ) -> Result<(), HttpError> {
        let key = keys::upload(&blob.digest);
        self.record.beats += 1;
        loop {
            let same = PutCondition::IfSame(self.version.clone());
            if let PutOutcome::Written(version) =
                bucket.put(&key, self.record.to_bytes()?, &same).await?
            {
                self.version = version;
                return Ok(());
            }
            // a request whose answer was lost may have written it
            match self.record.stands(bucket, &key).await? {
                Some(version) if version != self.version => self.version = version,
                _ => {
                    let words = "another run goes on with this upload";
                    return Err(
                        HttpError::new(ErrorKind::NotFound, words).about(bucket.shown(&key))
                    );
                }
            }
        }
    }

    /// Removes it, where it is still this process's.
    pub(super) async fn remove(&self, bucket: &Bucket, blob: &Descriptor) -> Result<(), HttpError> {
        let key = keys::upload(&blob.digest);
        match self.record.stands(bucket, &key).await? {
            Some(_) => bucket.delete(vec![key]).await,
            None => Ok(()),
        }
    }

    /// Gives the upload up, where it is still this process's: the next one begins anew.
    pub(super) async fn discard(
        &self,
        bucket: &Bucket,
        blob: &Descriptor,
    ) -> Result<(), HttpError> {
        let key = keys::upload(&blob.digest);
        if self.record.stands(bucket, &key).await?.is_some() {
            bucket.delete(vec![key]).await?;
            bucket
                .abort_parts(&keys::blob(&blob.digest), &self.record.upload)
                .await?;
        }
        Ok(())
    }
}

/// Begins an upload. `None` where another run was first.
async fn begin(bucket: &Bucket, blob: &Descriptor) -> Result<Option<OwnRecord>, HttpError> {
    let most_parts = blob.size.div_ceil(PARTS).next_multiple_of(1 << 20);
    let record = Record {
        owner: keys::unique(),
        beats: 0,
        upload: bucket.begin_parts(&keys::blob(&blob.digest)).await?,
        part_size: PART.max(most_parts),
        parts: Vec::new(),
        hash: hash_text(&Hasher::new(blob.digest.algorithm())),
    };
    let upload = record.upload.clone();
    let own = write(bucket, blob, record, &PutCondition::IfAbsent).await?;
    if own.is_none() {
        bucket
            .abort_parts(&keys::blob(&blob.digest), &upload)
            .await?;
    }
    Ok(own)
}

/// Goes on with the upload of a run that has ended; one that cannot be resumed is given up. `None`
/// where there is nothing to go on with, or another run was first.
async fn take_over(
    bucket: &Bucket,
    blob: &Descriptor,
    (bytes, version): (&[u8], ObjectVersion),
) -> Result<Option<OwnRecord>, HttpError> {
    let record: Option<Record> = serde_json::from_slice(bytes).ok();
    match record.filter(|record| record.fits(blob)) {
        Some(record) => {
            let record = Record {
                owner: keys::unique(),
                beats: record.beats + 1,
                ..record
            };
            write(bucket, blob, record, &PutCondition::IfSame(version)).await
        }
        None => {
            bucket.delete(vec![keys::upload(&blob.digest)]).await?;
            Ok(None)
        }
    }
}

/// Writes the record of a new owner. `None` where the condition does not hold.
async fn write(
    bucket: &Bucket,
    blob: &Descriptor,
    record: Record,
    condition: &PutCondition,
) -> Result<Option<OwnRecord>, HttpError> {
    let key = keys::upload(&blob.digest);
    let version = match bucket.put(&key, record.to_bytes()?, condition).await? {
        PutOutcome::Written(version) => Some(version),
        // a request whose answer was lost may have written it
        PutOutcome::Refused => record.stands(bucket, &key).await?,
    };
    Ok(version.map(|version| OwnRecord { record, version }))
}

impl Record {
    /// The version that stands there, where it is this owner's.
    async fn stands(&self, bucket: &Bucket, key: &str) -> Result<Option<ObjectVersion>, HttpError> {
        let Some((bytes, object)) = bucket.get(key, MOST).await? else {
            return Ok(None);
        };
        let found = serde_json::from_slice::<Record>(&bytes);
        Ok(found
            .is_ok_and(|found| found.owner == self.owner)
            .then(|| object.version()))
    }

    /// Gives up the upload whose record stands at `key`.
    pub(super) async fn end(bucket: &Bucket, key: &str) -> Result<(), HttpError> {
        let blob = key.replacen(keys::UPLOADS, "blobs", 1);
        if let Some((bytes, _)) = bucket.get(key, MOST).await?
            && let Ok(record) = serde_json::from_slice::<Record>(&bytes)
        {
            bucket.abort_parts(&blob, &record.upload).await?;
        }
        bucket.delete(vec![key.to_owned()]).await
    }

    fn hasher(&self, blob: &Descriptor) -> Option<Hasher> {
        Hasher::resume(blob.digest.algorithm(), &BASE64.decode(&self.hash).ok()?)
    }

    /// Whether `blob` can be resumed by it.
    fn fits(&self, blob: &Descriptor) -> bool {
        // the last part is shorter than the others
        let most = blob.size.div_ceil(self.part_size.max(1));
        self.part_size >= PART && self.parts.len() as u64 <= most && self.hasher(blob).is_some()
    }

    fn to_bytes(&self) -> Result<bytes::Bytes, HttpError> {
        let bytes = serde_json::to_vec(self);
        Ok(bytes
            .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?
            .into())
    }
}

/// The state of a hash as a record has it.
pub(super) fn hash_text(hasher: &Hasher) -> String {
    BASE64.encode(hasher.state())
}
