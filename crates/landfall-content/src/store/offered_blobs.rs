//! The blobs that a server offers from a store: only those that the server's locks name. In an
//! object store, all ranges of a blob are read from the version of its object that was examined
//! first.

use super::objects::unreadable;
use super::served_store::ServedStore;
use crate::bucket::{Bucket, OpenObject};
use crate::{
    BlobRead, ContentError, FileStamp, LockEntry, PresignedUrls, RangeRead, RangeReader,
    VerifiedRead,
};
use landfall_model::{Digest, DigestCheckedReader, locked};
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a presigned URL is valid. A client that resumes after that requests a new URL.
const URL_LIFETIME: Duration = Duration::from_mins(15);

/// The blobs that a server offers from a store.
pub struct OfferedBlobs {
    /// The sizes of the blobs according to the locks, so that no request is needed to get them.
    sizes: HashMap<Digest, u64>,
    store: ServedStore,
    /// The objects of an object store that were examined.
    objects: Mutex<HashMap<Digest, OpenObject>>,
}

impl OfferedBlobs {
    /// Offers those blobs of the store that the lock entries name.
    pub fn new(store: &ServedStore, entries: impl Iterator<Item = LockEntry>) -> OfferedBlobs {
        let parts = entries.flat_map(|entry| entry.parts);
        let sizes = parts
            .map(|part| (part.descriptor.digest, part.descriptor.size))
            .collect();
        OfferedBlobs {
            sizes,
            store: store.clone(),
            objects: Mutex::default(),
        }
    }

    fn size(&self, digest: &Digest) -> Result<u64, ContentError> {
        self.sizes
            .get(digest)
            .copied()
            .ok_or_else(|| ContentError::missing(digest))
    }

    /// Returns the object that holds the blob, as it was when it was first examined.
    fn object(&self, bucket: &Bucket, digest: &Digest) -> Result<OpenObject, ContentError> {
        let size = self.size(digest)?;
        let object = locked(&self.objects).get(digest).cloned();
        if let Some(object) = object {
            return Ok(object);
        }
        let object = OpenObject::open(bucket, &digest.layout_path())
            .map_err(|error| unreadable(digest, error))?;
        // content of another size has another digest, so it need not be read
        if object.size() != size {
            return Err(ContentError::damaged(digest));
        }
        locked(&self.objects).insert(digest.clone(), object.clone());
        Ok(object)
    }

    /// Opens the blob at `offset`, in the object that was examined first. Fails if that object was
    /// replaced; the next call then examines the new object.
    fn reader(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let object = match &self.store {
            ServedStore::Disk(disk) => return disk.open(digest, offset),
            ServedStore::Bucket(bucket) => self.object(bucket, digest)?,
        };
        let range = offset.min(object.size())..object.size();
        match RangeReader::begin(Arc::new(object), range) {
            Ok(reader) => Ok(Box::new(reader)),
            Err(source) => {
                // a replaced object is verified again, because its version differs
                locked(&self.objects).remove(digest);
                Err(ContentError::read(digest, source))
            }
        }
    }
}

impl BlobRead for OfferedBlobs {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.sizes.get(digest).copied())
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let reader = self.reader(digest, offset)?;
        if offset > 0 {
            return Ok(reader);
        }
        let wrong = format!("{digest}: the store has other bytes under this digest");
        let size = self.size(digest)?;
        let checked = DigestCheckedReader::new(reader, digest, size, move |_| {
            io::Error::new(io::ErrorKind::InvalidData, wrong.clone())
        });
        Ok(Box::new(checked))
    }
}

impl VerifiedRead for OfferedBlobs {
    fn file_stamps(&self, digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        self.size(digest)?;
        match &self.store {
            ServedStore::Disk(disk) => disk.file_stamps(digest),
            ServedStore::Bucket(bucket) => Ok(vec![self.object(bucket, digest)?.file_stamp()]),
        }
    }

    fn open_verified(
        &self,
        digest: &Digest,
        offset: u64,
    ) -> Result<Box<dyn Read + Send>, ContentError> {
        self.size(digest)?;
        self.reader(digest, offset)
    }

    fn is_remote(&self) -> bool {
        matches!(self.store, ServedStore::Bucket(_))
    }

    fn as_presigned_urls(&self) -> Option<&dyn PresignedUrls> {
        Some(self)
    }
}

impl PresignedUrls for OfferedBlobs {
    fn presigned_url(&self, digest: &Digest) -> Result<Option<String>, ContentError> {
        self.size(digest)?;
        let ServedStore::Bucket(bucket) = &self.store else {
            return Ok(None);
        };
        let bucket = bucket.clone();
        let key = digest.layout_path();
        let url =
            crate::bucket::block_on(async move { bucket.presigned(&key, URL_LIFETIME).await });
        match url {
            Ok(url) => Ok(Some(url.into())),
            Err(error) => Err(ContentError::read(digest, io::Error::other(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{PutMode, block_on};
    use crate::{EntryPart, LockEntry, PartOrigin};
    use landfall_model::Descriptor;
    use landfall_model::report::EntryKind;

    #[test]
    fn only_blobs_of_the_locks_are_offered_and_damaged_blobs_fail() {
        let bucket = Bucket::in_memory();
        let right = Digest::sha256(b"right");
        let wrong = Digest::sha256(b"wrong");
        let other = Digest::sha256(b"other");
        for (digest, bytes) in [
            (&right, &b"right"[..]),
            (&wrong, b"wrOng"),
            (&other, b"other"),
        ] {
            let bucket = bucket.clone();
            let key = digest.layout_path();
            block_on(async move { bucket.put(&key, bytes.into(), &PutMode::Overwrite).await })
                .unwrap();
        }
        let entry = |digest: &Digest| {
            let top = Descriptor {
                digest: digest.clone(),
                size: 5,
                media_type: "x/y".into(),
            };
            let part = EntryPart {
                descriptor: top.clone(),
                origin: PartOrigin::Url("https://h.example/a".into()),
            };
            LockEntry {
                kind: EntryKind::File,
                name: "a".into(),
                digest: digest.clone(),
                layout_name: "a".into(),
                top,
                artifact_type: None,
                parts: vec![part],
                referrers: Vec::new(),
                referrer_blobs: std::collections::BTreeSet::new(),
            }
        };
        let entries = [&right, &wrong].into_iter().map(entry);
        let offered = OfferedBlobs::new(&ServedStore::Bucket(bucket), entries);
        let read = |digest: &Digest, offset| {
            let mut bytes = Vec::new();
            offered
                .open(digest, offset)
                .unwrap()
                .read_to_end(&mut bytes)
                .map(|_| bytes)
        };
        assert_eq!(read(&right, 0).unwrap(), b"right");
        assert_eq!(read(&right, 3).unwrap(), b"ht");
        assert_eq!(
            read(&wrong, 0).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        assert!(offered.verify(&right).unwrap() && !offered.verify(&wrong).unwrap());
        assert_eq!(offered.stat(&other).unwrap(), None);
        assert!(matches!(
            offered.open(&other, 0),
            Err(ContentError::Missing { .. })
        ));
        assert!(matches!(
            offered.file_stamps(&other),
            Err(ContentError::Missing { .. })
        ));
        assert!(matches!(
            offered.presigned_url(&other),
            Err(ContentError::Missing { .. })
        ));
    }
}
