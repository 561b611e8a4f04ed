//! Several readers of content as one, such as a delta and its bases; and what none of them has of some entries.

use crate::content::Entry;
use crate::content::{BlobRead, ContentError, Look};
use crate::model::{Descriptor, Digest};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// Several readers of content as one: each digest is read from the first that has it.
pub(crate) struct BlobChain(pub Vec<Arc<dyn BlobRead>>);

impl BlobChain {
    fn find(&self, digest: &Digest) -> Result<Option<(&dyn BlobRead, u64)>, ContentError> {
        for blobs in &self.0 {
            if let Some(size) = blobs.stat(digest)? {
                return Ok(Some((&**blobs, size)));
            }
        }
        Ok(None)
    }

    fn holder(&self, digest: &Digest) -> Result<&dyn BlobRead, ContentError> {
        let missing = || ContentError::Missing { digest: digest.clone() };
        Ok(self.find(digest)?.ok_or_else(missing)?.0)
    }
}

impl BlobRead for BlobChain {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.find(digest)?.map(|(_, size)| size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        self.holder(digest)?.open(digest, offset)
    }

    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        self.holder(digest)?.open_whole(digest)
    }

    fn looks(&self, digest: &Digest) -> Result<Vec<Look>, ContentError> {
        self.holder(digest)?.looks(digest)
    }

    fn open_known(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        self.holder(digest)?.open_known(digest, offset)
    }
}

/// Content that is nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingBlob {
    /// What it is.
    pub blob: Descriptor,
    /// The entries that need it.
    pub items: Vec<String>,
}

/// What the entries need and `blobs` lacks, or has in another size; by digest.
///
/// # Errors
/// When `blobs` cannot say.
pub(crate) fn missing_blobs<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    blobs: &dyn BlobRead,
) -> Result<Vec<MissingBlob>, ContentError> {
    let mut asked: BTreeMap<&Digest, Option<MissingBlob>> = BTreeMap::new();
    for entry in entries {
        for blob in entry.parts.iter().filter(|part| part.is_stored()).map(|part| &part.descriptor) {
            if !asked.contains_key(&blob.digest) {
                let there = blobs.stat(&blob.digest)? == Some(blob.size);
                let missing = (!there).then(|| MissingBlob { blob: blob.clone(), items: Vec::new() });
                asked.insert(&blob.digest, missing);
            }
            if let Some(Some(missing)) = asked.get_mut(&blob.digest)
                && missing.items.last() != Some(&entry.name)
            {
                missing.items.push(entry.name.clone());
            }
        }
    }
    Ok(asked.into_values().flatten().collect())
}
