//! The plain bytes of the blobs that are compared.

use super::plain_file::{
    PlainFile, PlainFileError, RecipeError, sniff, write_assumed_plain, write_plain,
};
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

/// A blob for which a recipe is about to be made.
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
    /// `None` for a blob that has too many plain bytes.
    recent: HashMap<Digest, Option<Arc<PlainBlob>>>,
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

    /// The plain bytes of a blob; `None` if the blob has too many of them for a recipe.
    pub(super) fn plain_blob(
        &mut self,
        blob: &Descriptor,
    ) -> Result<Option<Arc<PlainBlob>>, RecipeError> {
        if let Some(plain) = self.recent.get(&blob.digest) {
            return Ok(plain.clone());
        }
        let read = |source: io::Error| ContentError::read(&blob.digest, source);
        let (mut coding, content) = sniff(self.open(blob)?).map_err(read)?;
        let mut written = write_plain(content, blob.size, coding, self.folder);
        // a file that only begins like a gzip stream
        if let Err(PlainFileError::Invalid(_)) = written {
            coding = BlobCoding::Plain;
            written = write_plain(self.open(blob)?, blob.size, coding, self.folder);
        }
        match written {
            Ok(plain) => Ok(Some(self.add(blob, coding, plain)?)),
            Err(PlainFileError::Write(source)) => Err(RecipeError::Temporary(source)),
            Err(PlainFileError::TooLong(_)) => {
                self.recent.insert(blob.digest.clone(), None);
                Ok(None)
            }
            Err(error) => Err(read(error.into()).into()),
        }
    }

    /// The plain bytes of a blob and the recipe of its stream; `None` if the blob has too many
    /// plain bytes for a recipe. The stream is decoded once for both, if one encoder can be assumed
    /// to have written all of it.
    pub(super) fn decoded_blob(
        &mut self,
        blob: &Descriptor,
    ) -> Result<Option<DecodedBlob>, RecipeError> {
        let read = |source: io::Error| ContentError::read(&blob.digest, source);
        let (coding, content) = sniff(self.open(blob)?).map_err(read)?;
        if coding == BlobCoding::Deflate
            && let Some((plain, recipe)) = write_assumed_plain(content, blob.size, self.folder)
        {
            return Ok(Some(DecodedBlob {
                blob: self.add(blob, coding, plain)?,
                assumed: Some(recipe),
            }));
        }
        // `write_assumed_plain` hides its error, and `plain_blob` reports it
        let plain = self.plain_blob(blob)?;
        Ok(plain.map(|blob| DecodedBlob {
            blob,
            assumed: None,
        }))
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
        let kept = Some(Arc::clone(&plain));
        self.recent.insert(blob.digest.clone(), kept);
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
