//! The plain bytes of blobs, in temporary files, and the folder of these files.

use crate::format::blob_recipe::{BlobCoding, MAX_STREAM_SECTION};
use landfall_content::{BlobRead, ContentError, CopyError, is_caused_by};
use landfall_deflate::{AnalysisLimits, DeflateError, PlainReader, Recipe, assume};
use landfall_model::{Descriptor, Digest, for_each_chunk};
use landfall_os::FileExt;
use landfall_patch::{Listing, PlainSource};
use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The limits of the recipe for the stream of a compressed blob of `size` bytes.
pub(super) fn stream_limits(size: u64) -> AnalysisLimits {
    AnalysisLimits {
        plain_bytes: BlobCoding::Deflate.max_plain(size),
        recipe_bytes: MAX_STREAM_SECTION,
        recipe_percent: 25,
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
        let file = tempfile::tempfile_in(folder);
        let file = file.map_err(|error| ScratchError::wrap(folder, error))?;
        Ok(TemporaryFileWriter {
            out: BufWriter::with_capacity(1 << 20, file),
            folder: folder.to_owned(),
            size: 0,
        })
    }

    /// Writes all of `content` to a new file in `folder`.
    fn write(mut content: impl Read, folder: &Path) -> io::Result<TemporaryFile> {
        let mut writer = TemporaryFile::writer(folder)?;
        for_each_chunk(&mut content, |chunk| writer.write_all(chunk))??;
        writer.finish()
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

/// Writes a [`TemporaryFile`], and counts its bytes. Its errors contain a [`ScratchError`].
pub(super) struct TemporaryFileWriter {
    out: BufWriter<File>,
    folder: PathBuf,
    size: u64,
}

impl TemporaryFileWriter {
    pub(super) fn finish(self) -> io::Result<TemporaryFile> {
        let file = self
            .out
            .into_inner()
            .map_err(|error| ScratchError::wrap(&self.folder, error.into_error()))?;
        Ok(TemporaryFile {
            file: Arc::new(file),
            size: self.size,
        })
    }
}

impl Write for TemporaryFileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes);
        let count = count.map_err(|error| ScratchError::wrap(&self.folder, error))?;
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        flushed.map_err(|error| ScratchError::wrap(&self.folder, error))
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

/// Writes the plain bytes of `blob`, which has `size` bytes, to a new file in `folder`. Returns
/// `None` if there are more of them than a reader rebuilds. The error contains a [`ScratchError`]
/// if the file cannot be written, and a [`DeflateError`] if the blob has another coding.
pub(super) fn write_plain(
    blob: impl Read,
    size: u64,
    coding: BlobCoding,
    folder: &Path,
) -> io::Result<Option<PlainFile>> {
    let limit = coding.max_plain(size);
    // one byte more than is allowed, to notice content that is too long
    let plain = match coding {
        BlobCoding::Plain => TemporaryFile::write(blob.take(limit + 1), folder)?,
        BlobCoding::Deflate => {
            TemporaryFile::write(PlainReader::new(blob).take(limit + 1), folder)?
        }
    };
    Ok((plain.size <= limit).then_some(plain))
}

/// The error for a blob for which [`write_plain`] returns `None`.
pub(super) fn too_long(coding: BlobCoding, size: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "it has more than {} plain bytes, which is too much for its size; pack the bundle \
             without --patches",
            coding.max_plain(size)
        ),
    )
}

/// Writes the plain bytes of a compressed blob to a new file in `folder`. Also returns the recipe
/// of its stream under the assumption that one encoder wrote all of it. Returns `None` if there is
/// no such recipe within the limits, if the blob is not a valid stream, or if reading or writing
/// fails.
pub(super) fn write_assumed_plain(
    blob: impl Read,
    size: u64,
    folder: &Path,
) -> Option<(PlainFile, Recipe)> {
    let mut writer = TemporaryFile::writer(folder).ok()?;
    let recipe = assume(|| Ok(blob), &stream_limits(size), &mut writer).ok()??;
    Some((writer.finish().ok()?, recipe))
}

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
    ) -> Result<Option<Arc<PlainBlob>>, CopyError> {
        if let Some(plain) = self.recent.get(&blob.digest) {
            return Ok(plain.clone());
        }
        let read = |source: io::Error| ContentError::read(&blob.digest, source);
        let (mut coding, content) = sniff(self.open(blob)?).map_err(read)?;
        let mut written = write_plain(content, blob.size, coding, self.folder);
        // a file that only begins like a gzip stream
        if written.as_ref().is_err_and(is_caused_by::<DeflateError>) {
            coding = BlobCoding::Plain;
            written = write_plain(self.open(blob)?, blob.size, coding, self.folder);
        }
        match written {
            Ok(Some(plain)) => Ok(Some(self.add(blob, coding, plain)?)),
            Ok(None) => {
                self.recent.insert(blob.digest.clone(), None);
                Ok(None)
            }
            // not one that occurred while the blob was read, which is deeper inside
            Err(error) if is_caused_by::<ScratchError>(&error) => Err(CopyError::Write(error)),
            Err(error) => Err(read(error).into()),
        }
    }

    /// The plain bytes of a blob and the recipe of its stream; `None` if the blob has too many
    /// plain bytes for a recipe. The stream is decoded once for both, if one encoder can be assumed
    /// to have written all of it.
    pub(super) fn decoded_blob(
        &mut self,
        blob: &Descriptor,
    ) -> Result<Option<DecodedBlob>, CopyError> {
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

// The folder for large temporary files.

/// A temporary file could not be written. This says nothing about the content that was about to be
/// written to it.
#[derive(Debug, thiserror::Error)]
#[error("cannot write a temporary file in {folder}: {source}")]
pub struct ScratchError {
    folder: PathBuf,
    source: io::Error,
}

impl ScratchError {
    /// The fix.
    pub const HELP: &'static str =
        "free some space there, or name another folder in the variable TMPDIR";

    /// Returns an error of the same kind that contains a `ScratchError`.
    pub(super) fn wrap(folder: &Path, source: io::Error) -> io::Error {
        let folder = folder.to_owned();
        io::Error::new(source.kind(), ScratchError { folder, source })
    }

    /// The error of the system in an error that [`wrap`](Self::wrap) made.
    pub(super) fn unwrap(error: io::Error) -> io::Error {
        match error.downcast::<ScratchError>() {
            Ok(wrapped) => wrapped.source,
            Err(error) => error,
        }
    }

    /// The failure to write a temporary file that caused `error`.
    pub fn cause_of(error: &ContentError) -> Option<&ScratchError> {
        ScratchError::cause(error)
    }

    pub(super) fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ScratchError> {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // `source` of an I/O error skips the error that it contains
        match error.downcast_ref::<io::Error>() {
            Some(error) => ScratchError::cause(error.get_ref()?),
            None => ScratchError::cause(error.source()?),
        }
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A copy of the error of the system.
    pub(crate) fn system_error(&self) -> io::Error {
        match self.source.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.source.kind(), self.source.to_string()),
        }
    }

    /// Whether the folder has no room.
    pub(super) fn is_full(&self) -> bool {
        let kind = self.source.kind();
        matches!(
            kind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }
}

/// The folder for large temporary files.
pub fn scratch_folder() -> PathBuf {
    landfall_os::scratch_folder(std::env::var_os("TMPDIR"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    #[test]
    fn a_blob_with_too_many_plain_bytes_for_its_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let plain_size = |zeros: usize| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
            gzip.write_all(&vec![0; zeros]).unwrap();
            let blob = gzip.finish().unwrap();
            let size = blob.len() as u64;
            let plain = write_plain(&blob[..], size, BlobCoding::Deflate, folder.path());
            let limits = stream_limits(size);
            let is_described = assume(|| Ok(&blob[..]), &limits, &mut io::sink());
            assert_eq!(
                matches!(plain, Ok(Some(_))),
                matches!(is_described, Ok(Some(_))),
                "{zeros}"
            );
            let plain = plain?.ok_or_else(|| too_long(BlobCoding::Deflate, size))?;
            io::Result::Ok(plain.size)
        };
        assert_eq!(plain_size(1 << 20).unwrap(), 1 << 20);
        let error = plain_size(20 << 20).unwrap_err().to_string();
        assert!(error.contains("too much for its size"), "{error}");
    }

    #[test]
    fn a_failure_to_write_a_temporary_file_is_found_in_every_error_that_it_causes() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let wrapped = ScratchError::wrap(Path::new("/scratch"), full);
        let digest = landfall_model::Digest::sha256(b"");
        let base = ContentError::read(&digest, wrapped);
        let error = ContentError::read(&digest, io::Error::other(base));
        let cause = ScratchError::cause_of(&error).unwrap();
        assert!(cause.is_full() && error.to_string().contains("in /scratch"));
        let other = ContentError::read(&digest, io::Error::from(io::ErrorKind::StorageFull));
        assert!(ScratchError::cause_of(&other).is_none());
        let folder = tempfile::tempdir().unwrap();
        let missing = TemporaryFile::writer(&folder.path().join("none"));
        let missing = missing
            .err()
            .map(|error| ContentError::read(&digest, error));
        assert!(ScratchError::cause_of(&missing.unwrap()).is_some());
    }
}
