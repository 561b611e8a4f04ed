//! Blobs that are computed rather than stored, held in memory.

use super::{BlobRead, ContentError, FileStamp, VerifiedRead};
use bytes::{Buf, Bytes};
use landfall_model::{Descriptor, Digest};
use std::collections::BTreeMap;
use std::io::Read;

/// Blobs in memory, by digest.
#[derive(Debug, Default)]
pub struct MemoryBlobs(pub BTreeMap<Digest, Bytes>);

impl MemoryBlobs {
    /// Adds a blob and returns its descriptor.
    pub fn put(&mut self, bytes: impl Into<Bytes>, media_type: &str) -> Descriptor {
        let bytes = bytes.into();
        let descriptor = Descriptor::of(&bytes, media_type);
        self.0.insert(descriptor.digest.clone(), bytes);
        descriptor
    }
}

impl BlobRead for MemoryBlobs {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.0.get(digest).map(|bytes| bytes.len() as u64))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let Some(bytes) = self.0.get(digest) else {
            return Err(ContentError::missing(digest));
        };
        let mut bytes = bytes.clone();
        bytes.advance(bytes.len().min(offset as usize));
        Ok(Box::new(bytes.reader()))
    }
}

impl VerifiedRead for MemoryBlobs {
    fn file_stamps(&self, _digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        // memory does not change, so one verification is enough for the whole process
        Ok(Vec::new())
    }
}
