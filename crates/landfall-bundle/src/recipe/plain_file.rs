//! The plain bytes of a blob in a temporary file.

use crate::format::blob_recipe::{BlobCoding, MAX_PLAIN, MAX_STREAM_SECTION};
use landfall_content::{ContentError, for_each_chunk};
use landfall_deflate::{AnalysisLimits, DeflateError, PlainReader, Recipe, assume};
use landfall_patch::PlainSource;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The limits of the stream section of a recipe.
pub(super) const STREAM_LIMITS: AnalysisLimits = AnalysisLimits {
    plain_bytes: MAX_PLAIN,
    recipe_bytes: MAX_STREAM_SECTION,
    recipe_percent: 25,
};

/// Why it is unknown whether a blob has a recipe.
#[derive(Debug)]
pub(super) enum RecipeError {
    /// Content cannot be read.
    Content(ContentError),
    /// A temporary file cannot be written or read.
    Temporary(io::Error),
}

impl From<ContentError> for RecipeError {
    fn from(error: ContentError) -> RecipeError {
        RecipeError::Content(error)
    }
}

/// The first bytes of a gzip stream (RFC 1952, section 2.3.1).
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];

/// The plain bytes of a blob.
pub(super) type PlainFile = TemporaryFile;

/// A file without a name, which the system removes when it is closed, even if the process is
/// killed.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: Arc<File>,
    size: u64,
}

impl TemporaryFile {
    /// Begins a new file in `folder`.
    pub(super) fn writer(folder: &Path) -> io::Result<TemporaryFileWriter> {
        let out = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder)?);
        Ok(TemporaryFileWriter { out, size: 0 })
    }

    /// Writes all of `content` to a new file in `folder`.
    fn write(mut content: impl Read, folder: &Path) -> Result<TemporaryFile, PlainFileError> {
        let mut writer = TemporaryFile::writer(folder).map_err(PlainFileError::Write)?;
        for_each_chunk(&mut content, |chunk| {
            writer.write_all(chunk).map_err(PlainFileError::Write)
        })?;
        writer.finish().map_err(PlainFileError::Write)
    }

    /// Returns a file of this size that cannot be read.
    #[cfg(test)]
    pub(super) fn unreadable(size: u64) -> TemporaryFile {
        let file = File::options().write(true).open("/dev/null").unwrap();
        TemporaryFile {
            file: Arc::new(file),
            size,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Reads the file from `offset` on.
    pub(crate) fn reader(&self, offset: u64) -> TemporaryFileReader {
        TemporaryFileReader {
            file: Arc::clone(&self.file),
            offset,
        }
    }
}

/// Writes a [`TemporaryFile`], and counts its bytes.
pub(super) struct TemporaryFileWriter {
    out: BufWriter<File>,
    size: u64,
}

impl TemporaryFileWriter {
    pub(super) fn finish(self) -> io::Result<TemporaryFile> {
        let file = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        Ok(TemporaryFile {
            file: Arc::new(file),
            size: self.size,
        })
    }
}

impl Write for TemporaryFileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl PlainSource for TemporaryFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

/// Reads a [`TemporaryFile`] at an offset of its own.
pub(crate) struct TemporaryFileReader {
    file: Arc<File>,
    offset: u64,
}

impl Read for TemporaryFileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// The coding of `blob`, by its first bytes, and a reader of the whole blob.
pub(super) fn sniff(mut blob: impl Read) -> io::Result<(BlobCoding, impl Read)> {
    let mut start = Vec::new();
    blob.by_ref()
        .take(GZIP.len() as u64)
        .read_to_end(&mut start)?;
    let coding = if start == GZIP {
        BlobCoding::Deflate
    } else {
        BlobCoding::Plain
    };
    Ok((coding, io::Cursor::new(start).chain(blob)))
}

/// Why there is no file with the plain bytes of a blob.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlainFileError {
    /// The blob cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// The file cannot be written.
    #[error(transparent)]
    Write(io::Error),
    /// The blob is not a stream with this coding.
    #[error(transparent)]
    Invalid(DeflateError),
    /// The blob has more plain bytes than a reader rebuilds.
    #[error("it has more than {MAX_PLAIN} plain bytes")]
    TooLong,
}

/// Treats an I/O error as an error of reading or decoding the blob.
impl From<io::Error> for PlainFileError {
    fn from(error: io::Error) -> PlainFileError {
        match error.downcast::<DeflateError>() {
            Ok(invalid) => PlainFileError::Invalid(invalid),
            Err(error) => PlainFileError::Read(error),
        }
    }
}

impl From<PlainFileError> for io::Error {
    fn from(error: PlainFileError) -> io::Error {
        match error {
            PlainFileError::Read(error) | PlainFileError::Write(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// Writes the plain bytes of `blob` to a new file in `folder`.
pub(super) fn write_plain(
    blob: impl Read,
    coding: BlobCoding,
    folder: &Path,
) -> Result<PlainFile, PlainFileError> {
    // one byte more than is allowed, to notice content that is too long
    let limit = MAX_PLAIN + 1;
    let plain = match coding {
        BlobCoding::Plain => TemporaryFile::write(blob.take(limit), folder)?,
        BlobCoding::Deflate => TemporaryFile::write(PlainReader::new(blob).take(limit), folder)?,
    };
    if plain.size > MAX_PLAIN {
        return Err(PlainFileError::TooLong);
    }
    Ok(plain)
}

/// Writes the plain bytes of a compressed blob to a new file in `folder`. Also returns the recipe
/// of its stream under the assumption that one encoder wrote all of it. Returns `None` if there is
/// no such recipe within the limits, if the blob is not a valid stream, or if reading or writing
/// fails.
pub(super) fn write_assumed_plain(blob: impl Read, folder: &Path) -> Option<(PlainFile, Recipe)> {
    let mut writer = TemporaryFile::writer(folder).ok()?;
    let recipe = assume(|| Ok(blob), &STREAM_LIMITS, &mut writer).ok()??;
    Some((writer.finish().ok()?, recipe))
}
