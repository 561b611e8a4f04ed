//! The blobs that recipes rebuild, without the content that they are rebuilt from.

use super::rebuilt_blobs::RebuiltBlobs;
use landfall_content::{BlobRead, ContentError, FileStamp, VerifiedRead};
use landfall_model::Digest;
use std::io::Read;

/// The blobs that recipes rebuild, without the content that they are rebuilt from. A server lists
/// that content as separate sources, and watches their files for changes.
pub struct RecipeBlobs(pub RebuiltBlobs);

impl BlobRead for RecipeBlobs {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        match self.0.stat_plain(digest)? {
            Some(_) => Ok(None),
            None => self.0.stat(digest),
        }
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        match self.stat(digest)? {
            Some(_) => self.0.open(digest, offset),
            None => Err(ContentError::missing(digest)),
        }
    }
}

impl VerifiedRead for RecipeBlobs {
    fn file_stamps(&self, _: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        // a rebuilt blob is in an unnamed temporary file, which no other process can change
        Ok(Vec::new())
    }
}
