//! The error of the crate.

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
