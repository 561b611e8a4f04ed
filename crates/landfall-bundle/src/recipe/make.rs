//! Makes the recipe of a blob, and proves it by rebuilding the blob.

use super::hashed_writer::HashedWriter;
use super::plain_file::{PlainFile, TemporaryFile, TemporaryFileReader};
use super::rebuild::rebuild;
use crate::format::blob_recipe::{
    BlobCoding, MAX_PLAIN, MAX_STREAM_SECTION, RecipeHeader, SECTIONS,
};
use landfall_content::{BlobRead, ContentError};
use landfall_deflate::{AnalysisLimits, DeflateError, analyze, estimate_recipe_size};
use landfall_model::{Descriptor, Digest};
use landfall_patch::{Listing, PatchBase, PatchError, PatchSections, create};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use tempfile::SpooledTempFile;

/// A section of the patch is kept in memory up to this size.
const MAX_IN_MEMORY: usize = 4 << 20;

/// A recipe is used if its size is at most this percentage of the blob's: rebuilding costs time.
const MAX_PERCENT: u64 = 90;

/// The limits of the stream section.
const STREAM_LIMITS: AnalysisLimits = AnalysisLimits {
    plain_bytes: MAX_PLAIN,
    recipe_bytes: MAX_STREAM_SECTION,
    recipe_percent: 25,
};

/// A recipe in a temporary file.
#[derive(Debug)]
pub struct RecipeFile {
    file: TemporaryFile,
    /// The digest of the recipe.
    pub(crate) digest: Digest,
}

impl RecipeFile {
    /// The size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.file.size()
    }

    pub(crate) fn reader(&self) -> TemporaryFileReader {
        self.file.reader(0)
    }
}

/// A blob with its plain bytes.
pub(super) struct PlainBlob {
    pub(super) digest: Digest,
    pub(super) coding: BlobCoding,
    pub(super) plain: Arc<PlainFile>,
    pub(super) listing: Arc<Listing>,
}

/// Why a blob has no recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRecipe {
    /// The compression cannot be described in few bytes.
    Compression,
    /// The recipe would not be much smaller than the blob.
    NotSmaller,
}

/// How the size of the stream section is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftMode {
    /// The whole stream is analyzed.
    Exact,
    /// Only the beginning of the stream is analyzed, so the draft cannot be written.
    Estimate,
}

/// A recipe that is not written yet.
pub(super) struct RecipeDraft {
    header: RecipeHeader,
    /// The stream section; empty in an estimate.
    stream: Vec<u8>,
    patch: [SpooledTempFile; SECTIONS - 1],
}

/// Describes `blob`, whose plain bytes are `new`, by parts of `bases`.
pub(super) fn draft_recipe(
    blob: &Descriptor,
    new: &PlainBlob,
    bases: &[Arc<PlainBlob>],
    content: &dyn BlobRead,
    mode: DraftMode,
) -> Result<Result<RecipeDraft, NoRecipe>, ContentError> {
    let failed = |source: io::Error| ContentError::read(&blob.digest, source);
    let (mut stream, mut stream_bytes) = (Vec::new(), 0);
    if new.coding == BlobCoding::Deflate {
        let open = || content.open(&blob.digest, 0).map_err(io::Error::other);
        let described = match mode {
            DraftMode::Exact => analyze(open, &STREAM_LIMITS).map(|recipe| {
                stream = recipe.as_bytes().to_vec();
                stream.len() as u64
            }),
            DraftMode::Estimate => estimate_recipe_size(open, blob.size, &STREAM_LIMITS),
        };
        stream_bytes = match described {
            Ok(size) => size,
            Err(DeflateError::Io(error)) => return Err(failed(error)),
            // too large, or not a valid stream
            Err(_) => return Ok(Err(NoRecipe::Compression)),
        };
    }
    let sections = make_patch(new, bases).map_err(|error| failed(patch_error(error)))?;
    let mut patch = sections.into_array();
    let mut lengths = [stream_bytes, 0, 0, 0, 0];
    for (section, length) in patch.iter_mut().zip(&mut lengths[1..]) {
        *length = section.seek(SeekFrom::End(0)).map_err(failed)?;
        section.rewind().map_err(failed)?;
    }
    let header = RecipeHeader {
        coding: new.coding,
        bases: bases.iter().map(|base| base.coding).collect(),
        plain: new.plain.size(),
        sections: lengths,
    };
    let draft = RecipeDraft {
        header,
        stream,
        patch,
    };
    if draft.size().saturating_mul(100) > blob.size.saturating_mul(MAX_PERCENT) {
        return Ok(Err(NoRecipe::NotSmaller));
    }
    Ok(Ok(draft))
}

impl RecipeDraft {
    /// The size of the recipe in bytes.
    pub(super) fn size(&self) -> u64 {
        self.header.length() + self.header.sections.iter().sum::<u64>()
    }

    /// Writes the recipe of `blob` to a file in `folder`, and proves it by rebuilding the blob.
    pub(super) fn write(
        self,
        blob: &Descriptor,
        bases: &[Arc<PlainBlob>],
        folder: &Path,
    ) -> io::Result<RecipeFile> {
        let file = TemporaryFile::writer(folder)?;
        let mut writer = HashedWriter::sha256(file, self.size());
        writer.write_all(&self.header.to_bytes())?;
        writer.write_all(&self.stream)?;
        for mut section in self.patch {
            io::copy(&mut section, &mut writer)?;
        }
        let (file, digest) = writer.finish()?;
        let recipe = RecipeFile {
            file: file.finish()?,
            digest,
        };
        let open = |offset| Ok(Box::new(recipe.file.reader(offset)) as Box<dyn Read + Send>);
        let bases = bases.iter().map(|base| Arc::clone(&base.plain)).collect();
        rebuild(blob, &self.header, &open, bases, io::sink())?;
        Ok(recipe)
    }
}

fn make_patch(
    new: &PlainBlob,
    bases: &[Arc<PlainBlob>],
) -> Result<PatchSections<SpooledTempFile>, PatchError> {
    let bases: Vec<PatchBase<'_>> = bases
        .iter()
        .map(|base| PatchBase {
            source: &*base.plain,
            listing: &base.listing,
        })
        .collect();
    let sinks = std::array::from_fn(|_| SpooledTempFile::new(MAX_IN_MEMORY));
    let sinks = PatchSections::from_array(sinks);
    let (sections, _) = create(&*new.plain, &new.listing, &bases, sinks)?;
    Ok(sections)
}

fn patch_error(error: PatchError) -> io::Error {
    match error {
        PatchError::Read { source, .. } | PatchError::Write(source) => source,
        PatchError::Damaged(_) => io::Error::other(error),
    }
}
