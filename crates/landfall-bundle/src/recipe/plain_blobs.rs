//! The plain bytes of the blobs that are compared.

use super::plain_file::{PlainFile, sniff, write_assumed_plain, write_plain};
use crate::format::blob_recipe::BlobCoding;
use landfall_content::{BlobRead, ContentError};
use landfall_deflate::Recipe;
use landfall_model::{Descriptor, Digest};
use landfall_patch::Listing;
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// A blob with its plain bytes.
pub(super) struct PlainBlob {
    pub(super) digest: Digest,
    pub(super) coding: BlobCoding,
    pub(super) plain: Arc<PlainFile>,
    pub(super) listing: Arc<Listing>,
}

/// A blob that is about to be described.
pub(super) struct DecodedBlob {
    pub(super) blob: Arc<PlainBlob>,
    /// The recipe of its stream, if one encoder can be assumed to have written all of it.
    pub(super) assumed: Option<Recipe>,
}

/// Decodes blobs, and keeps the plain bytes of those that were compared recently.
pub(super) struct PlainBlobs<'a> {
    new: &'a dyn BlobRead,
    old: &'a dyn BlobRead,
    folder: &'a Path,
    recent: HashMap<Digest, Arc<PlainBlob>>,
}

impl<'a> PlainBlobs<'a> {
    /// Reads blobs from `new`, or else from `old`. Plain bytes are written to temporary files in
    /// `folder`.
    pub(super) fn new(new: &'a dyn BlobRead, old: &'a dyn BlobRead, folder: &'a Path) -> Self {
        Self {
            new,
            old,
            folder,
            recent: HashMap::new(),
        }
    }

    /// Forgets the blobs for which `is_needed` returns false.
    pub(super) fn retain(&mut self, is_needed: impl Fn(&Digest) -> bool) {
        self.recent.retain(|digest, _| is_needed(digest));
    }

    /// The plain bytes of a blob.
    pub(super) fn plain_blob(&mut self, blob: &Descriptor) -> Result<Arc<PlainBlob>, ContentError> {
        if let Some(plain) = self.recent.get(&blob.digest) {
            return Ok(Arc::clone(plain));
        }
        let read = |source: io::Error| ContentError::read(&blob.digest, source);
        let (coding, content) = sniff(self.open(blob)?).map_err(read)?;
        let plain = write_plain(content, coding, self.folder).map_err(read)?;
        self.add(blob, coding, plain)
    }

    /// The plain bytes of a blob and the recipe of its stream. The stream is decoded once for both,
    /// if one encoder can be assumed to have written all of it.
    pub(super) fn decoded_blob(&mut self, blob: &Descriptor) -> Result<DecodedBlob, ContentError> {
        let read = |source: io::Error| ContentError::read(&blob.digest, source);
        let (coding, content) = sniff(self.open(blob)?).map_err(read)?;
        if coding == BlobCoding::Deflate
            && let Some((plain, recipe)) =
                write_assumed_plain(content, self.folder).map_err(read)?
        {
            return Ok(DecodedBlob {
                blob: self.add(blob, coding, plain)?,
                assumed: Some(recipe),
            });
        }
        Ok(DecodedBlob {
            blob: self.plain_blob(blob)?,
            assumed: None,
        })
    }

    fn add(
        &mut self,
        blob: &Descriptor,
        coding: BlobCoding,
        plain: PlainFile,
    ) -> Result<Arc<PlainBlob>, ContentError> {
        let listing = Listing::read(plain.reader(0))
            .map_err(|error| ContentError::read(&blob.digest, io::Error::other(error)))?;
        let plain = Arc::new(PlainBlob {
            digest: blob.digest.clone(),
            coding,
            plain: Arc::new(plain),
            listing: Arc::new(listing),
        });
        self.recent.insert(blob.digest.clone(), Arc::clone(&plain));
        Ok(plain)
    }

    fn open(&self, blob: &Descriptor) -> Result<Box<dyn Read + Send>, ContentError> {
        if self.new.stat(&blob.digest)? == Some(blob.size) {
            self.new.open(&blob.digest, 0)
        } else {
            self.old.open(&blob.digest, 0)
        }
    }
}
