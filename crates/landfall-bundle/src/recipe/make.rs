//! Makes the recipe of a blob, and proves it by rebuilding the blob.

use super::plain_file::{PlainFile, TemporaryFile, TemporaryFileReader};
use super::rebuild::rebuild;
use crate::format::blob_recipe::{BlobCoding, MAX_STREAM_SECTION, RecipeHeader};
use landfall_content::{BlobRead, ContentError};
use landfall_deflate::{AnalysisLimits, DeflateError, analyze};
use landfall_model::{Descriptor, Digest, Hasher};
use landfall_patch::{Listing, PatchBase, PatchError, PatchSections, create};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use tempfile::SpooledTempFile;

/// A section of the patch is kept in memory up to this size.
const MAX_IN_MEMORY: usize = 4 << 20;

/// A recipe is used if it is smaller than the blob by a tenth: rebuilding costs time.
const MAX_PERCENT: u64 = 90;

/// A recipe in a temporary file.
#[derive(Debug)]
pub struct RecipeFile {
    file: TemporaryFile,
    /// The digest of the recipe.
    pub(crate) digest: Digest,
}

impl RecipeFile {
    /// The size of the plain bytes.
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

/// Makes the recipe of `blob`, whose plain bytes are `new`, from `bases`.
pub(super) fn make_recipe(
    blob: &Descriptor,
    new: &PlainBlob,
    bases: &[Arc<PlainBlob>],
    content: &dyn BlobRead,
    folder: &Path,
) -> Result<Result<RecipeFile, NoRecipe>, ContentError> {
    let failed = |source: io::Error| ContentError::read(&blob.digest, source);
    let stream = match new.coding {
        BlobCoding::Plain => Vec::new(),
        BlobCoding::Deflate => match describe_stream(blob, content)? {
            Some(stream) => stream,
            None => return Ok(Err(NoRecipe::Compression)),
        },
    };
    let sections = make_patch(new, bases).map_err(|error| failed(patch_error(error)))?;
    let mut sections = sections.into_array();
    let mut lengths = [stream.len() as u64, 0, 0, 0, 0];
    for (section, length) in sections.iter_mut().zip(&mut lengths[1..]) {
        *length = section.seek(SeekFrom::End(0)).map_err(failed)?;
        section.rewind().map_err(failed)?;
    }
    let header = RecipeHeader {
        coding: new.coding,
        bases: bases.iter().map(|base| base.coding).collect(),
        plain: new.plain.size(),
        sections: lengths,
    };
    let size = header.length() + lengths.iter().sum::<u64>();
    if size.saturating_mul(100) > blob.size.saturating_mul(MAX_PERCENT) {
        return Ok(Err(NoRecipe::NotSmaller));
    }
    let mut hasher = Hasher::new(Digest::sha256(b"").algorithm());
    let start = io::Cursor::new([header.to_bytes(), stream].concat());
    let recipe = sections
        .into_iter()
        .fold(Box::new(start) as Box<dyn Read>, |before, section| {
            Box::new(before.chain(section))
        });
    let hashed = HashedReader {
        inner: recipe,
        hasher: &mut hasher,
    };
    let file = TemporaryFile::write(hashed, folder).map_err(failed)?;
    let recipe = RecipeFile {
        file,
        digest: hasher.finish(),
    };
    prove(blob, &header, &recipe, bases).map_err(failed)?;
    Ok(Ok(recipe))
}

/// The stream section of a compressed blob; `None` if it would be too large, or the blob is not a
/// valid stream.
fn describe_stream(
    blob: &Descriptor,
    content: &dyn BlobRead,
) -> Result<Option<Vec<u8>>, ContentError> {
    let limits = AnalysisLimits {
        recipe_bytes: MAX_STREAM_SECTION,
        ..AnalysisLimits::default()
    };
    let open = || content.open(&blob.digest, 0).map_err(io::Error::other);
    match analyze(open, &limits) {
        Ok(recipe) => Ok(Some(recipe.as_bytes().to_vec())),
        Err(DeflateError::Io(error)) => Err(ContentError::read(&blob.digest, error)),
        Err(_) => Ok(None),
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

/// Rebuilds the blob and compares its digest.
fn prove(
    blob: &Descriptor,
    header: &RecipeHeader,
    recipe: &RecipeFile,
    bases: &[Arc<PlainBlob>],
) -> io::Result<()> {
    let bases = bases.iter().map(|base| Arc::clone(&base.plain)).collect();
    let open = |offset| Ok(Box::new(recipe.file.reader(offset)) as Box<dyn Read + Send>);
    rebuild(blob, header, &open, bases, io::sink())
}

fn patch_error(error: PatchError) -> io::Error {
    match error {
        PatchError::Read { source, .. } | PatchError::Write(source) => source,
        PatchError::Damaged(_) => io::Error::other(error),
    }
}

struct HashedReader<'a, R> {
    inner: R,
    hasher: &'a mut Hasher,
}

impl<R: Read> Read for HashedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
