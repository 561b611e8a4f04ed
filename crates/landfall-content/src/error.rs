//! Why content cannot be written, and why a part cannot be moved.

use landfall_http::{ErrorKind, HttpError};
use landfall_model::report::TransferSide;
use landfall_model::{Descriptor, Digest};
use std::path::{Path, PathBuf};

/// Why content cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or folder of the sink: what was tried, and the system's answer.
    #[error("{sink}cannot {action} {path}: {source}{hint}")]
    Io {
        /// The sink's name and a colon, where messages name it.
        sink: &'static str,
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
        /// What to do about it; empty, or begins with a semicolon.
        hint: &'static str,
    },
    /// Content that came in has another digest than it should have.
    #[error("the bytes that came are not {wanted}: they are {found}")]
    Digest {
        /// What was wanted.
        wanted: Digest,
        /// What came.
        found: Digest,
    },
    /// Content that came in has another size than it should have.
    #[error("{wanted} should have {size} bytes, {found} came")]
    Size {
        /// What was wanted.
        wanted: Digest,
        /// Its size.
        size: u64,
        /// What came.
        found: u64,
    },
    /// The sink refuses for a reason of its own.
    #[error("{0}")]
    Refused(String),
}

impl WriteError {
    /// A step with a file that failed.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> WriteError {
        let hint = match is_full(&source) {
            true => "; free some space and run it again, it goes on from here",
            false => "",
        };
        WriteError::Io {
            sink: "",
            action,
            path: path.into(),
            source,
            hint,
        }
    }

    /// Whether the disk has no room.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, WriteError::Io { source, .. } if is_full(source))
    }
}

/// Whether no byte more goes to this disk, or to this user's share of it.
fn is_full(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
    )
}

/// A part that could not be moved.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why}")]
pub struct TransferError {
    /// Which side failed.
    pub side: TransferSide,
    /// Why.
    pub why: Box<HttpError>,
}

impl TransferError {
    /// An error of this side and class.
    pub fn new(side: TransferSide, kind: ErrorKind, message: impl Into<String>) -> TransferError {
        TransferError {
            side,
            why: HttpError::new(kind, message).into(),
        }
    }

    /// Whether another URL may have what this one lacks, or has otherwise by now.
    pub fn is_elsewhere(&self) -> bool {
        self.side == TransferSide::Source
            && matches!(
                self.why.kind,
                ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Invalid
            )
    }

    /// The same error, and how it went on at `url`.
    #[must_use]
    pub fn then(self, url: &str, next: &TransferError) -> TransferError {
        let next = next.to_string();
        let place = if next.contains(url) {
            String::new()
        } else {
            format!("{url}: ")
        };
        TransferError::new(self.side, self.why.kind, format!("{self}; {place}{next}"))
    }

    /// Whether the disk of the destination is full.
    pub fn is_full(&self) -> bool {
        let cause = std::error::Error::source(&*self.why)
            .and_then(|cause| cause.downcast_ref::<WriteError>());
        cause.is_some_and(WriteError::is_full_disk)
    }

    /// An error of the source.
    pub fn source(why: HttpError) -> TransferError {
        TransferError {
            side: TransferSide::Source,
            why: why.into(),
        }
    }

    /// An error of the destination.
    pub fn destination(why: HttpError) -> TransferError {
        TransferError {
            side: TransferSide::Destination,
            why: why.into(),
        }
    }
}

impl From<WriteError> for TransferError {
    fn from(error: WriteError) -> TransferError {
        let (side, kind) = match &error {
            WriteError::Digest { .. } | WriteError::Size { .. } => {
                (TransferSide::Source, ErrorKind::Invalid)
            }
            WriteError::Io { .. } | WriteError::Refused(_) => {
                (TransferSide::Destination, ErrorKind::Local)
            }
        };
        let message = error.to_string();
        TransferError {
            side,
            why: HttpError::new(kind, message).caused_by(error).into(),
        }
    }
}

/// A stream that ended before the content did.
pub(super) fn ended(descriptor: &Descriptor, at: u64) -> HttpError {
    let Descriptor { digest, size, .. } = descriptor;
    HttpError::new(
        ErrorKind::Network,
        format!("{digest}: the answer ended after {at} of {size} bytes"),
    )
}
