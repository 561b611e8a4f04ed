//! The record of an upload in progress, with which any process on any machine can resume the upload
//! after the last part that the record lists.
//!
//! Only the owner that the record names continues the upload: if two runs sent the same part, only
//! one of them would know its identifier. The owner rewrites the record as a heartbeat; another run
//! takes over the upload when the record has not changed for [`StoreTimeouts::lease`]. An owner
//! rewrites the record only if the stored version is the one that it wrote last.

use super::bucket_store;
use super::bucket_store::StoreTimeouts;
use crate::bucket::{Bucket, BucketObject, MAX_OBJECT_SIZE, PutMode, PutOutcome, UpdateVersion};
use crate::verified_writer::BlobHash;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Descriptor, Hasher};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use tokio::time::sleep;

/// The smallest size in bytes of a part that is not the last. S3 requires at least 5 MiB.
pub(super) const MIN_PART_SIZE: u64 = 8 << 20;
/// The largest number of parts of an upload that S3 accepts.
const MAX_PARTS: u64 = 10_000;
/// The largest record that is read, in bytes.
const MAX_RECORD: u64 = 4 << 20;

/// The state of an upload.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UploadRecord {
    /// A random identifier of the run that continues the upload.
    #[serde(default)]
    owner: String,
    /// How often the record was rewritten, so that each heartbeat changes it.
    #[serde(default)]
    beats: u64,
    /// The identifier of the upload in the object store.
    pub upload: String,
    /// The size of all parts but the last, in bytes.
    pub part_size: u64,
    /// The identifiers of the uploaded parts, from the first on without a gap.
    pub parts: Vec<String>,
    /// The state of the hasher after these parts, in base64.
    pub hash: String,
}

/// The record of an upload that this process owns.
#[derive(Debug, Clone)]
pub(super) struct OwnUploadRecord {
    pub record: UploadRecord,
    /// The version of the object that this process wrote last.
    version: UpdateVersion,
}

impl OwnUploadRecord {
    /// Begins the upload of `blob`, or takes it over from a run that has ended. Waits while another
    /// run continues it. Returns `None` if that run completes it: the key of the blob then has an
    /// object other than `before`.
    pub(super) async fn open(
        bucket: &Bucket,
        blob: &Descriptor,
        before: Option<&BucketObject>,
        timeouts: StoreTimeouts,
    ) -> Result<Option<OwnUploadRecord>, HttpError> {
        let key = bucket_store::upload(&blob.digest);
        let mut seen: Option<(BucketObject, Instant)> = None;
        loop {
            let Some((bytes, object)) = bucket.get(&key, MAX_RECORD).await? else {
                let found = bucket.head(&bucket_store::blob(&blob.digest)).await?;
                if found.is_some_and(|found| found.size == blob.size && Some(&found) != before) {
                    return Ok(None);
                }
                // neither a record nor the blob: no process uploads it
                if let Some(own) = begin(bucket, blob).await? {
                    return Ok(Some(own));
                }
                continue;
            };
            match &seen {
                Some((same, since)) if *same == object => {
                    // by this process's own clock, because clocks of machines and the object store
                    // may differ
                    if since.elapsed() >= timeouts.lease {
                        match take_over(bucket, blob, &bytes, object.version()).await? {
                            Some(own) => return Ok(Some(own)),
                            None => seen = None,
                        }
                        continue;
                    }
                }
                _ => seen = Some((object, Instant::now())),
            }
            sleep(timeouts.heartbeat).await;
        }
    }

    /// Returns the hash of the uploaded parts. They are not fetched again, because the state of the
    /// hasher was recorded with them.
    pub(super) fn hash(&self, blob: &Descriptor) -> BlobHash {
        let parts = self.record.parts.len() as u64;
        let hasher = self.record.hasher(blob);
        BlobHash {
            hasher: hasher.unwrap_or_else(|| Hasher::new(blob.digest.algorithm())),
            // the last part may be shorter than the others
            offset: blob.size.min(parts * self.record.part_size),
            blob: blob.clone(),
        }
    }

    /// Writes the record. Fails with [`ErrorKind::NotFound`] if another run has taken over the
    /// upload.
    pub(super) async fn save(
        &mut self,
        bucket: &Bucket,
        blob: &Descriptor,
    ) -> Result<(), HttpError> {
        let key = bucket_store::upload(&blob.digest);
        // the record must change, or other runs would take the upload over
        self.record.beats += 1;
        loop {
            let same = PutMode::Update(self.version.clone());
            if let PutOutcome::Written(version) =
                bucket.put(&key, self.record.to_bytes()?, &same).await?
            {
                self.version = version;
                return Ok(());
            }
            // a request whose answer was lost may have written the record
            match self.record.stored_version(bucket, &key).await? {
                Some(version) if version != self.version => self.version = version,
                _ => {
                    let words = "another run has taken over this upload";
                    return Err(HttpError::new(ErrorKind::NotFound, words).about(bucket.url(&key)));
                }
            }
        }
    }

    /// Removes the record if this process still owns it.
    pub(super) async fn remove(&self, bucket: &Bucket, blob: &Descriptor) -> Result<(), HttpError> {
        let key = bucket_store::upload(&blob.digest);
        match self.record.stored_version(bucket, &key).await? {
            Some(_) => bucket.delete(vec![key]).await,
            None => Ok(()),
        }
    }

    /// Aborts the upload if this process still owns it, so that the next attempt starts over.
    pub(super) async fn discard(
        &self,
        bucket: &Bucket,
        blob: &Descriptor,
    ) -> Result<(), HttpError> {
        let key = bucket_store::upload(&blob.digest);
        if self.record.stored_version(bucket, &key).await?.is_some() {
            // the record first: without it, no process resumes an upload that is being aborted
            bucket.delete(vec![key]).await?;
            bucket
                .abort_parts(&bucket_store::blob(&blob.digest), &self.record.upload)
                .await?;
        }
        Ok(())
    }
}

/// Begins an upload. Returns `None` if another run was first.
async fn begin(bucket: &Bucket, blob: &Descriptor) -> Result<Option<OwnUploadRecord>, HttpError> {
    if blob.size > MAX_OBJECT_SIZE {
        let words = format!(
            "it has {} bytes according to the lock, and an object store takes at most 5 TiB",
            blob.size
        );
        let name = bucket.url(&bucket_store::blob(&blob.digest));
        return Err(HttpError::new(ErrorKind::Local, words).about(name));
    }
    let record = UploadRecord {
        owner: bucket_store::unique(),
        beats: 0,
        upload: bucket
            .begin_parts(&bucket_store::blob(&blob.digest))
            .await?,
        part_size: part_size_of(blob),
        parts: Vec::new(),
        hash: encode_hash_state(&Hasher::new(blob.digest.algorithm())),
    };
    let upload = record.upload.clone();
    let written = write(bucket, blob, record, &PutMode::Create).await;
    if matches!(written, Ok(Some(_))) {
        return written;
    }
    // Another run was first, or the record cannot be written: no process would resume this upload,
    // and no `gc` would find it. If the answer of the store was lost, the record names an upload
    // that no longer exists, which does no harm.
    let aborted = bucket
        .abort_parts(&bucket_store::blob(&blob.digest), &upload)
        .await;
    written?;
    aborted?;
    Ok(None)
}

/// Returns the size in bytes of the parts of a blob, except the last one.
fn part_size_of(blob: &Descriptor) -> u64 {
    // larger parts for large blobs, so that their number stays within the limit of S3
    let size_for_max_parts = blob.size.div_ceil(MAX_PARTS).next_multiple_of(1 << 20);
    MIN_PART_SIZE.max(size_for_max_parts)
}

/// Takes over the upload of a run that has ended. If it cannot be resumed, it is aborted. Returns
/// `None` in that case, or if another run was first.
async fn take_over(
    bucket: &Bucket,
    blob: &Descriptor,
    bytes: &[u8],
    version: UpdateVersion,
) -> Result<Option<OwnUploadRecord>, HttpError> {
    let record: Option<UploadRecord> = serde_json::from_slice(bytes).ok();
    match record.filter(|record| record.is_resumable(blob)) {
        Some(record) => {
            let record = UploadRecord {
                owner: bucket_store::unique(),
                beats: record.beats + 1,
                ..record
            };
            write(bucket, blob, record, &PutMode::Update(version)).await
        }
        None => {
            abort_recorded(bucket, &bucket_store::upload(&blob.digest), bytes).await?;
            Ok(None)
        }
    }
}

/// Aborts the upload that the record at `key` names, and deletes the record.
async fn abort_recorded(bucket: &Bucket, key: &str, bytes: &[u8]) -> Result<(), HttpError> {
    let blob = key.replacen(bucket_store::UPLOADS, "blobs", 1);
    // not parsed as `UploadRecord`, because another release may have written other fields; if the
    // record were deleted without aborting its upload, no `gc` would find that upload
    let record: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    if let Some(upload) = record.as_ref().and_then(|record| record["upload"].as_str()) {
        bucket.abort_parts(&blob, &upload.to_owned()).await?;
    }
    bucket.delete(vec![key.to_owned()]).await
}

/// Writes the record of a new owner. Returns `None` if the condition does not hold.
async fn write(
    bucket: &Bucket,
    blob: &Descriptor,
    record: UploadRecord,
    condition: &PutMode,
) -> Result<Option<OwnUploadRecord>, HttpError> {
    let key = bucket_store::upload(&blob.digest);
    let version = match bucket.put(&key, record.to_bytes()?, condition).await? {
        PutOutcome::Written(version) => Some(version),
        // a request whose answer was lost may have written the record
        PutOutcome::Refused => record.stored_version(bucket, &key).await?,
    };
    Ok(version.map(|version| OwnUploadRecord { record, version }))
}

impl UploadRecord {
    /// Returns the version of the stored record if it names the same owner.
    async fn stored_version(
        &self,
        bucket: &Bucket,
        key: &str,
    ) -> Result<Option<UpdateVersion>, HttpError> {
        let Some((bytes, object)) = bucket.get(key, MAX_RECORD).await? else {
            return Ok(None);
        };
        let found = serde_json::from_slice::<UploadRecord>(&bytes);
        Ok(found
            .is_ok_and(|found| found.owner == self.owner)
            .then(|| object.version()))
    }

    /// Aborts the upload whose record has this key, and deletes the record.
    pub(super) async fn abort(bucket: &Bucket, key: &str) -> Result<(), HttpError> {
        match bucket.get(key, MAX_RECORD).await? {
            Some((bytes, _)) => abort_recorded(bucket, key, &bytes).await,
            None => Ok(()),
        }
    }

    fn hasher(&self, blob: &Descriptor) -> Option<Hasher> {
        Hasher::resume(blob.digest.algorithm(), &BASE64.decode(&self.hash).ok()?)
    }

    /// Whether the upload of `blob` can be resumed with this record.
    fn is_resumable(&self, blob: &Descriptor) -> bool {
        let part_size = part_size_of(blob);
        // a part is kept in memory, so a record must not choose its size
        self.part_size == part_size
            // rounded up, because the last part may be shorter than the others
            && self.parts.len() as u64 <= blob.size.div_ceil(part_size)
            && self.hasher(blob).is_some()
    }

    fn to_bytes(&self) -> Result<bytes::Bytes, HttpError> {
        let bytes = serde_json::to_vec(self);
        Ok(bytes
            .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?
            .into())
    }
}

/// Returns the state of a hasher in the form that a record stores.
pub(super) fn encode_hash_state(hasher: &Hasher) -> String {
    BASE64.encode(hasher.state())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::emulator::{Emulator, RequestHook, RequestMoment};
    use bytes::Bytes;
    use landfall_model::Digest;
    use std::sync::{Arc, Mutex};

    fn blob(size: u64) -> Descriptor {
        Descriptor {
            digest: Digest::sha256(b"x"),
            size,
            media_type: "x/y".into(),
        }
    }

    fn bucket() -> Bucket {
        Emulator::default().bucket(0, Arc::new(|_| Box::pin(async { true })))
    }

    /// Takes over an upload whose record was changed. Returns whether it is continued, and whether
    /// it still exists in the object store.
    async fn is_continued(change: impl FnOnce(&mut serde_json::Value)) -> [bool; 2] {
        let bucket = bucket();
        let blob = blob(100 << 20);
        let own = begin(&bucket, &blob).await.unwrap().unwrap();
        let mut record = serde_json::to_value(&own.record).unwrap();
        change(&mut record);
        let bytes = record.to_string();
        let taken = take_over(&bucket, &blob, bytes.as_bytes(), own.version.clone()).await;
        let key = bucket_store::blob(&blob.digest);
        let part = Bytes::from_static(b"part");
        let put = bucket.put_part(&key, &own.record.upload, 0, part).await;
        [taken.unwrap().is_some(), put.is_ok()]
    }

    #[tokio::test]
    async fn an_upload_that_cannot_be_resumed_is_aborted() {
        assert_eq!(is_continued(|_| {}).await, [true, true]);
        for part_size in [0, 5 << 20, 1_u64 << 62] {
            let changed = is_continued(|record| record["partSize"] = part_size.into());
            assert_eq!(changed.await, [false, false], "{part_size}");
        }
        let changed = is_continued(|record| record["hash"] = "AAAA".into());
        assert_eq!(changed.await, [false, false]);
        let changed = is_continued(|record| record["new"] = 1.into());
        assert_eq!(changed.await, [false, false], "a field of another release");
    }

    #[tokio::test]
    async fn an_upload_whose_record_cannot_be_written_is_aborted() {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let hook: RequestHook = Arc::new(move |moment: RequestMoment| {
            let is_record = moment.request.starts_with("PUT ");
            seen.lock().unwrap().push(moment.request);
            Box::pin(async move { !is_record })
        });
        let bucket = Emulator::default().bucket(0, hook);
        let blob = blob(100 << 20);
        begin(&bucket, &blob).await.unwrap_err();
        let last = requests.lock().unwrap().pop().unwrap();
        assert!(
            last.starts_with("DELETE ") && last.contains("uploadId="),
            "{last}"
        );
    }

    #[tokio::test]
    async fn a_blob_that_is_too_large_for_an_object_store_is_refused() {
        assert_eq!(part_size_of(&blob(MAX_OBJECT_SIZE)), 525 << 20);
        let error = begin(&bucket(), &blob(1 << 62)).await.unwrap_err();
        assert!(error.to_string().contains("at most 5 TiB"), "{error}");
    }
}
