//! Content of several places, such as a delta and its bases; and what of some entries is in none of them.

use crate::content::Entry;
use crate::content::{BlobRead, ContentError};
use crate::model::{Descriptor, Digest};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// BlobChain places as one: each digest is read from the first that has it.
pub struct BlobChain(pub Vec<Arc<dyn BlobRead>>);

impl BlobChain {
    fn find(&self, digest: &Digest) -> Result<Option<(&dyn BlobRead, u64)>, ContentError> {
        for place in &self.0 {
            if let Some(size) = place.stat(digest)? {
                return Ok(Some((&**place, size)));
            }
        }
        Ok(None)
    }

    fn place(&self, digest: &Digest) -> Result<&dyn BlobRead, ContentError> {
        let missing = || ContentError::Missing { digest: digest.clone() };
        Ok(self.find(digest)?.ok_or_else(missing)?.0)
    }
}

impl BlobRead for BlobChain {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.find(digest)?.map(|(_, size)| size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        self.place(digest)?.open(digest, offset)
    }

    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        self.place(digest)?.open_whole(digest)
    }
}

/// Content that is nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingBlob {
    /// What it is.
    pub blob: Descriptor,
    /// The entries that need it.
    pub items: Vec<String>,
}

/// What the entries need and `blobs` has not, or not in the right size; by digest.
///
/// # Errors
/// When `blobs` cannot say.
pub fn missing_blobs<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    blobs: &dyn BlobRead,
) -> Result<Vec<MissingBlob>, ContentError> {
    let mut asked: BTreeMap<&Digest, Option<MissingBlob>> = BTreeMap::new();
    for entry in entries {
        for blob in entry.parts.iter().filter(|part| part.is_stored()).map(|part| &part.descriptor) {
            if !asked.contains_key(&blob.digest) {
                let there = blobs.stat(&blob.digest)? == Some(blob.size);
                let lacking = (!there).then(|| MissingBlob { blob: blob.clone(), items: Vec::new() });
                asked.insert(&blob.digest, lacking);
            }
            if let Some(Some(lacking)) = asked.get_mut(&blob.digest)
                && lacking.items.last() != Some(&entry.name)
            {
                lacking.items.push(entry.name.clone());
            }
        }
    }
    Ok(asked.into_values().flatten().collect())
}
