//! Binary patches between plain streams, file by file if the streams are tar archives. A patch
//! describes a new stream by parts of one or more base streams. If a part of the new stream
//! resembles a part of a base, the patch contains only the bytes that differ; if it is new, the
//! patch contains all its bytes. The patch is small for a layer whose files are mostly equal to
//! those of an older layer, and for programs whose code moved.
//!
//! 1. [`PlainSource`]: a stream that can be read at any offset;
//! 2. [`Listing`]: the files of a stream, and how similar two listings are; [`extended_path`] reads
//!    the long paths in an archive;
//! 3. `matching`: similar parts of two files;
//! 4. [`create()`]: writes a patch, as four [sections](PatchSections);
//! 5. [`PatchReader`]: reads the new stream from a patch and its bases.
//!
//! The encoding of a patch is part of the bundle format (`docs/reference/recipes.md`). The crate
//! imports `landfall-os` only, and uses zstd for compression. It needs bounded memory:
//! 230 MiB while a patch is created, and 40 MiB while one is applied. The listing of a stream of
//! 65,536 files or more takes 6 MB.
//!
//! Begin with `create.rs`.

mod apply;
mod correspondence;
mod create;
mod listing;
mod matching;
mod sections;

pub use apply::PatchReader;
pub use create::{PatchBase, create};
use landfall_os::FileExt;
pub use listing::{Listing, extended_path};
pub use sections::{PatchSections, SECTIONS};
use std::fs::File;
use std::io;
use thiserror::Error;

/// A patch could not be created or applied.
#[derive(Debug, Error)]
pub enum PatchError {
    /// A stream could not be read.
    #[error("reading {what}")]
    Read {
        /// The stream: the new one, a base, or a section of the patch.
        what: &'static str,
        /// The error of the reader.
        #[source]
        source: io::Error,
    },
    /// A section of the patch could not be written.
    #[error("writing the patch")]
    Write(#[source] io::Error),
    /// The patch is damaged or malicious: it does not describe a stream.
    #[error("the patch is damaged: {0}")]
    Damaged(&'static str),
}

impl PatchError {
    /// Returns a function that turns an I/O error into a failure to read the stream `what`.
    pub(crate) fn reading(what: &'static str) -> impl Fn(io::Error) -> PatchError + Copy {
        move |source| PatchError::Read { what, source }
    }
}

/// Plain bytes that can be read at any offset, from several threads.
pub trait PlainSource: Send + Sync {
    /// The number of plain bytes.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// If the source ends before `buffer` is full, or cannot be read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

/// A file with its length.
impl PlainSource for (File, u64) {
    fn size(&self) -> u64 {
        self.1
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

impl PlainSource for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let source = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..)?.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(source);
        Ok(())
    }
}

/// Reads `length` bytes at `offset`. The caller bounds `length`.
pub(crate) fn read_vec(
    source: &dyn PlainSource,
    offset: u64,
    length: usize,
) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    source.read_at(&mut bytes, offset)?;
    Ok(bytes)
}
