//! Decides which blobs get a recipe, writes the recipes, and proves each by rebuilding its blob.

use super::plain_file::{PlainBlob, PlainFile, TemporaryFile, TemporaryFileReader, stream_limits};
use super::planner::UnpatchedReason;
use crate::format::blob_recipe::{BlobCoding, RecipeHeader, SECTIONS};
use landfall_content::{BlobRead, ContentError, CopyError};
use landfall_deflate::{DeflateError, Rebuilder, Recipe, analyze, estimate_recipe_size};
use landfall_model::{Algorithm, Descriptor, Digest, HashedStream, for_each_chunk};
use landfall_patch::{PatchBase, PatchError, PatchReader, PatchSections, PlainSource, create};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use tempfile::SpooledTempFile;

/// A section of the patch is kept in memory up to this size.
const MAX_IN_MEMORY: usize = 4 << 20;

/// A recipe is used if its size is at most this percentage of the size of the blob: rebuilding
/// costs time.
const MAX_PERCENT: u64 = 90;

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

/// A blob, and the bases that its recipe may use.
pub(super) struct RecipeInput<'a> {
    pub(super) blob: &'a Descriptor,
    /// The plain bytes of the blob.
    pub(super) new: &'a PlainBlob,
    pub(super) bases: &'a [Arc<PlainBlob>],
    /// The recipe of the blob's stream, if one encoder is assumed to have written all of it.
    pub(super) assumed: Option<&'a Recipe>,
    /// The content that contains the blob.
    pub(super) content: &'a dyn BlobRead,
    /// The folder for temporary files.
    pub(super) folder: &'a Path,
}

/// A recipe that is not written yet.
struct RecipeDraft {
    header: RecipeHeader,
    stream: Vec<u8>,
    patch: [SpooledTempFile; SECTIONS - 1],
}

/// A recipe that is not proven yet.
struct WrittenRecipe {
    file: RecipeFile,
    header: RecipeHeader,
}

/// Makes the recipe of a blob, and proves it by rebuilding the blob. A recipe that does not rebuild
/// the blob is not returned.
pub(super) fn make_recipe(
    input: &RecipeInput<'_>,
) -> Result<Result<RecipeFile, UnpatchedReason>, CopyError> {
    if let Some(assumed) = input.assumed {
        match draft_recipe(input, assumed.as_bytes().to_vec())? {
            Err(no_recipe) => return Ok(Err(no_recipe)),
            Ok(draft) => {
                let recipe = draft.write(input.folder)?;
                if prove(&recipe, input)?.is_ok() {
                    return Ok(Ok(recipe.file));
                }
            }
        }
    }
    // no encoder is assumed, another encoder wrote the end of the stream, or a base cannot be read
    let limits = stream_limits(input.blob.size);
    let stream = match input.new.coding {
        BlobCoding::Plain => Vec::new(),
        BlobCoding::Deflate => match analyze(|| open_blob(input), &limits) {
            Ok(recipe) => recipe.as_bytes().to_vec(),
            Err(error) => return Ok(Err(no_stream_section(input, error)?)),
        },
    };
    match draft_recipe(input, stream)? {
        Err(no_recipe) => Ok(Err(no_recipe)),
        Ok(draft) => {
            let recipe = draft.write(input.folder)?;
            Ok(prove(&recipe, input)?.map(|()| recipe.file))
        }
    }
}

/// Estimates the size of the recipe that [`make_recipe`] would make, in less time: only the
/// beginning of the stream is analyzed, and nothing is rebuilt.
pub(super) fn estimate_recipe(
    input: &RecipeInput<'_>,
) -> Result<Result<u64, UnpatchedReason>, CopyError> {
    let open = || open_blob(input);
    let limits = stream_limits(input.blob.size);
    let stream_size = match input.new.coding {
        BlobCoding::Plain => Ok(0),
        BlobCoding::Deflate => estimate_recipe_size(open, input.blob.size, &limits),
    };
    let stream_size = match stream_size {
        Ok(size) => size,
        Err(error) => return Ok(Err(no_stream_section(input, error)?)),
    };
    let (header, _) = draft_patch(input, stream_size)?;
    Ok(header.if_worth(input.blob))
}

fn open_blob(input: &RecipeInput<'_>) -> io::Result<Box<dyn Read + Send>> {
    let content = input.content.open(&input.blob.digest, 0);
    content.map_err(io::Error::other)
}

/// Describes the blob by its stream section and by parts of the bases.
fn draft_recipe(
    input: &RecipeInput<'_>,
    stream: Vec<u8>,
) -> Result<Result<RecipeDraft, UnpatchedReason>, CopyError> {
    let (header, patch) = draft_patch(input, stream.len() as u64)?;
    Ok(header.if_worth(input.blob).map(|_| RecipeDraft {
        header,
        stream,
        patch,
    }))
}

/// Returns the reason why a stream has no recipe, or an error if the blob cannot be read.
fn no_stream_section(
    input: &RecipeInput<'_>,
    error: DeflateError,
) -> Result<UnpatchedReason, ContentError> {
    match error {
        DeflateError::Io(error) => Err(ContentError::read(&input.blob.digest, error)),
        // too large, or not a valid stream
        _ => Ok(UnpatchedReason::Compression),
    }
}

/// Makes the sections of the patch, and the header of a recipe with these sections.
fn draft_patch(
    input: &RecipeInput<'_>,
    stream_size: u64,
) -> Result<(RecipeHeader, [SpooledTempFile; SECTIONS - 1]), CopyError> {
    let sections = make_patch(input).map_err(|error| match error {
        PatchError::Write(source) => CopyError::Write(source),
        PatchError::Read { source, .. } => ContentError::read(&input.blob.digest, source).into(),
        PatchError::Damaged(_) => {
            ContentError::read(&input.blob.digest, io::Error::other(error)).into()
        }
    })?;
    let mut patch = sections.into_array();
    let mut lengths = [stream_size, 0, 0, 0, 0];
    for (section, length) in patch.iter_mut().zip(&mut lengths[1..]) {
        *length = section
            .seek(SeekFrom::End(0))
            .and_then(|end| section.rewind().map(|()| end))
            .map_err(CopyError::Write)?;
    }
    let header = RecipeHeader {
        coding: input.new.coding,
        bases: input.bases.iter().map(|base| base.coding).collect(),
        plain: input.new.plain.size(),
        sections: lengths,
    };
    Ok((header, patch))
}

impl RecipeHeader {
    /// The size of the recipe in bytes.
    fn recipe_size(&self) -> u64 {
        self.length() + self.sections.iter().sum::<u64>()
    }

    /// Returns the size of the recipe if the savings are worth the time to rebuild `blob`.
    fn if_worth(&self, blob: &Descriptor) -> Result<u64, UnpatchedReason> {
        let size = self.recipe_size();
        if size.saturating_mul(100) > blob.size.saturating_mul(MAX_PERCENT) {
            return Err(UnpatchedReason::NotSmaller);
        }
        Ok(size)
    }
}

impl RecipeDraft {
    /// Writes the recipe to a file in `folder`.
    fn write(self, folder: &Path) -> Result<WrittenRecipe, CopyError> {
        self.try_write(folder).map_err(CopyError::Write)
    }

    fn try_write(self, folder: &Path) -> io::Result<WrittenRecipe> {
        let file = TemporaryFile::writer(folder)?;
        let mut writer = HashedWriter::sha256(file, self.header.recipe_size());
        writer.write_all(&self.header.to_bytes())?;
        writer.write_all(&self.stream)?;
        for mut section in self.patch {
            io::copy(&mut section, &mut writer)?;
        }
        let (file, digest) = writer.finish()?;
        let file = RecipeFile {
            file: file.finish()?,
            digest,
        };
        Ok(WrittenRecipe {
            file,
            header: self.header,
        })
    }
}

/// Proves a recipe by rebuilding the blob.
fn prove(
    recipe: &WrittenRecipe,
    input: &RecipeInput<'_>,
) -> Result<Result<(), UnpatchedReason>, CopyError> {
    let file = &recipe.file.file;
    let open = |offset| Ok(Box::new(file.reader(offset)) as Box<dyn Read + Send>);
    let bases = input.bases.iter().map(|base| Arc::clone(&base.plain));
    let bases = bases.collect();
    match rebuild(input.blob, &recipe.header, &open, bases, io::sink()) {
        Ok(_) => Ok(Ok(())),
        Err(error) => match disk_error(error) {
            Some(error) => Err(CopyError::Write(error)),
            // a fault of an encoder must not prevent the delivery of the blob, and content that is
            // damaged is found when the blob itself is packed
            None => Ok(Err(UnpatchedReason::Unproven)),
        },
    }
}

/// Returns the error of the system if that is why a recipe cannot be proven: a temporary file
/// cannot be read.
fn disk_error(error: io::Error) -> Option<io::Error> {
    let source = match error.downcast::<PatchError>() {
        Ok(PatchError::Read { source, .. }) => source,
        Ok(_) => return None,
        Err(error) => error,
    };
    source.raw_os_error()?;
    let message = format!("cannot read a temporary file: {source}");
    Some(io::Error::new(source.kind(), message))
}

fn make_patch(input: &RecipeInput<'_>) -> Result<PatchSections<SpooledTempFile>, PatchError> {
    let RecipeInput { new, folder, .. } = input;
    let bases: Vec<PatchBase<'_>> = input
        .bases
        .iter()
        .map(|base| PatchBase {
            source: &*base.plain,
            listing: &base.listing,
        })
        .collect();
    let sinks = std::array::from_fn(|_| SpooledTempFile::new_in(MAX_IN_MEMORY, folder));
    let sinks = PatchSections::from_array(sinks);
    create(&*new.plain, &new.listing, &bases, sinks)
}

/// Writes the blob to `sink`, and returns `sink`. `open` opens the content of the recipe at an
/// offset. Never writes more bytes than the blob has; fails with
/// [`InvalidData`](io::ErrorKind::InvalidData) if the result does not have the blob's digest.
pub(super) fn rebuild<W: Write>(
    blob: &Descriptor,
    header: &RecipeHeader,
    open: &dyn Fn(u64) -> io::Result<Box<dyn Read + Send>>,
    bases: Vec<Arc<PlainFile>>,
    sink: W,
) -> io::Result<W> {
    let section = |number: usize| -> io::Result<io::Take<Box<dyn Read + Send>>> {
        Ok(open(header.offset(number))?.take(header.sections[number]))
    };
    let mut patch = Vec::new();
    for number in 1..SECTIONS {
        patch.push(section(number)?);
    }
    let patch = patch.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    let bases = bases
        .into_iter()
        .map(|base| base as Arc<dyn PlainSource>)
        .collect();
    let mut plain = PatchReader::new(PatchSections::from_array(patch), bases, header.plain)
        .map_err(io::Error::other)?;
    let mut sink = HashedWriter::of_blob(sink, blob);
    match header.coding {
        BlobCoding::Plain => {
            io::copy(&mut plain, &mut sink)?;
        }
        BlobCoding::Deflate => {
            let mut bytes = Vec::new();
            section(0)?.read_to_end(&mut bytes)?;
            let recipe = Recipe::parse(bytes).map_err(io::Error::other)?;
            compress(&mut plain, Rebuilder::new(recipe, &mut sink))?;
        }
    }
    sink.finish_blob(blob)
}

fn compress(plain: &mut impl Read, mut rebuilder: Rebuilder<impl Write>) -> io::Result<()> {
    for_each_chunk(plain, |chunk| rebuilder.write(chunk).map_err(io_error))??;
    rebuilder.finish().map_err(io_error)?;
    Ok(())
}

/// An error of the sink stays as it is, so that its cause can be found.
fn io_error(error: DeflateError) -> io::Error {
    match error {
        DeflateError::Io(error) => error,
        error => io::Error::other(error),
    }
}

/// Writes a limited number of bytes to `sink`, and hashes them.
pub(super) struct HashedWriter<W> {
    sink: HashedStream<W>,
    /// How many more bytes may be written.
    left: u64,
}

impl<W: Write> HashedWriter<W> {
    /// Begins to write `blob`.
    pub(super) fn of_blob(sink: W, blob: &Descriptor) -> HashedWriter<W> {
        HashedWriter {
            sink: HashedStream::new(sink, blob.digest.algorithm()),
            left: blob.size,
        }
    }

    /// Begins to write `size` bytes.
    pub(super) fn sha256(sink: W, size: u64) -> HashedWriter<W> {
        HashedWriter {
            sink: HashedStream::new(sink, Algorithm::Sha256),
            left: size,
        }
    }

    /// Returns the sink and the digest of the written bytes. Fails if bytes are missing.
    pub(super) fn finish(mut self) -> io::Result<(W, Digest)> {
        self.sink.flush()?;
        if self.left > 0 {
            return Err(invalid("it is shorter than its expected size"));
        }
        Ok(self.sink.finish())
    }

    /// Returns the sink if exactly the bytes of `blob` were written.
    pub(super) fn finish_blob(self, blob: &Descriptor) -> io::Result<W> {
        let (sink, digest) = self.finish()?;
        if digest != blob.digest {
            return Err(invalid("its bytes do not have its digest"));
        }
        Ok(sink)
    }
}

impl<W: Write> Write for HashedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(invalid("it is longer than its expected size"));
        }
        self.sink.write_all(bytes)?;
        self.left -= bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_content::MemoryBlobs;
    use landfall_patch::Listing;

    fn unreadable_recipe(sections: [u64; SECTIONS]) -> WrittenRecipe {
        WrittenRecipe {
            file: RecipeFile {
                file: TemporaryFile::unreadable(100),
                digest: Digest::sha256(b""),
            },
            header: RecipeHeader {
                coding: BlobCoding::Deflate,
                bases: Vec::new(),
                plain: 0,
                sections,
            },
        }
    }

    #[test]
    fn a_disk_error_during_a_proof_is_reported() {
        let blob = Descriptor::new(Digest::sha256(b"blob"), 4, "t");
        let new = PlainBlob {
            digest: blob.digest.clone(),
            coding: BlobCoding::Deflate,
            plain: Arc::new(TemporaryFile::unreadable(4)),
            listing: Arc::new(Listing::read(io::empty()).unwrap()),
        };
        let dir = tempfile::tempdir().unwrap();
        let content = MemoryBlobs::default();
        let input = RecipeInput {
            blob: &blob,
            new: &new,
            bases: &[],
            assumed: None,
            content: &content,
            folder: dir.path(),
        };
        let proven = prove(&unreadable_recipe([9; SECTIONS]), &input);
        let Err(CopyError::Write(error)) = &proven else {
            panic!("{proven:?}")
        };
        let message = error.to_string();
        assert!(
            message.starts_with("cannot read a temporary file: "),
            "{message}"
        );
        let proven = prove(&unreadable_recipe([0; SECTIONS]), &input).unwrap();
        assert_eq!(proven, Err(UnpatchedReason::Unproven));
    }
}
