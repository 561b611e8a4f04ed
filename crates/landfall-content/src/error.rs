//! Why a blob cannot be written, and why a part cannot be transferred.

use landfall_http::{ErrorKind, HttpError};
use landfall_model::report::TransferSide;
use landfall_model::{Descriptor, Digest, Failure};
use landfall_os::is_too_many_files;
use std::path::{Path, PathBuf};

/// Why a blob cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An operation on a file or folder of the sink failed.
    #[error("{sink}cannot {action} {path}: {source}{hint}")]
    Io {
        /// The name of the sink with a colon, for messages that name it; else empty.
        sink: &'static str,
        /// The operation that failed, as a verb.
        action: &'static str,
        /// The file or folder of the operation.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
        /// What to do about it, beginning with a semicolon; may be empty.
        hint: &'static str,
    },
    /// The received bytes have another digest.
    #[error("received wrong bytes: expected {wanted}, got {found}")]
    Digest {
        /// The digest of the blob.
        wanted: Digest,
        /// The digest of the received bytes.
        found: Digest,
    },
    /// The number of received bytes differs from the size of the blob.
    #[error("received {found} bytes of {wanted}, expected {size}")]
    Size {
        /// The digest of the blob.
        wanted: Digest,
        /// The size of the blob in bytes.
        size: u64,
        /// How many bytes were received.
        found: u64,
    },
    /// The sink refuses the blob for a reason of its own.
    #[error("{0}")]
    Refused(String),
}

/// A task on a blocking thread that panicked.
impl From<tokio::task::JoinError> for WriteError {
    fn from(error: tokio::task::JoinError) -> WriteError {
        WriteError::Refused(error.to_string())
    }
}

impl WriteError {
    /// Returns the error for an operation on a file that failed.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> WriteError {
        WriteError::Io {
            sink: "",
            action,
            path: path.into(),
            hint: hint(&source),
            source,
        }
    }

    /// Whether the disk or the user's quota on it is full.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, WriteError::Io { source, .. } if is_full_disk(source))
    }
}

/// The cause alone, for callers whose message names the folder.
impl From<WriteError> for std::io::Error {
    fn from(error: WriteError) -> std::io::Error {
        match error {
            WriteError::Io { source, .. } => source,
            other => std::io::Error::other(other),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        Failure::failed(error.to_string()).on(TransferSide::Destination)
    }
}

/// What to do about an error of the operating system, beginning with a semicolon; may be empty.
pub(super) fn hint(error: &std::io::Error) -> &'static str {
    if is_full_disk(error) {
        "; free some space and run it again to resume"
    } else if error.kind() == std::io::ErrorKind::FileTooLarge {
        "; FAT32 holds files up to 4 GiB, and `ulimit -f` may set a limit"
    } else if is_too_many_files(error) {
        "; raise the limit with `ulimit -n`, or set fewer --jobs"
    } else {
        ""
    }
}

/// Whether the disk, or this user's quota on it, is full.
pub fn is_full_disk(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
    )
}

/// Why a part cannot be transferred.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why}")]
pub struct TransferError {
    /// Whether the source or the destination failed.
    pub side: TransferSide,
    /// The error of that side.
    pub why: Box<HttpError>,
}

impl TransferError {
    /// Returns an error of this side and kind.
    pub fn new(side: TransferSide, kind: ErrorKind, message: impl Into<String>) -> TransferError {
        TransferError {
            side,
            why: HttpError::new(kind, message).into(),
        }
    }

    /// Whether another URL may have the part: this URL lacks the part, denies access or has wrong
    /// bytes.
    pub fn may_be_elsewhere(&self) -> bool {
        self.side == TransferSide::Source
            // not after a network error, which does not show whether this URL has the part
            && matches!(
                self.why.kind,
                ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Invalid
            )
    }

    /// Combines this error with `next`, the error of the next URL, `url`. If `next` shows that
    /// another URL may have the part, the result has the side and kind of this error. Otherwise it
    /// has the side, kind and cause of `next`.
    #[must_use]
    pub fn then(self, url: &str, next: TransferError) -> TransferError {
        if !next.may_be_elsewhere() {
            let why = next.why.hint(&format!("; earlier, {self}")).into();
            return TransferError { why, ..next };
        }
        let next = next.to_string();
        // most errors name their URL already
        let next = if next.contains(url) {
            next
        } else {
            format!("{url}: {next}")
        };
        TransferError::new(self.side, self.why.kind, format!("{self}; {next}"))
    }

    /// Whether the disk of the destination is full.
    pub fn is_full(&self) -> bool {
        std::error::Error::source(&*self.why)
            .and_then(|cause| cause.downcast_ref::<WriteError>())
            .is_some_and(WriteError::is_full_disk)
    }

    /// Returns an error of the source.
    pub fn source(why: HttpError) -> TransferError {
        TransferError {
            side: TransferSide::Source,
            why: why.into(),
        }
    }

    /// Returns an error of the destination.
    pub fn destination(why: HttpError) -> TransferError {
        TransferError {
            side: TransferSide::Destination,
            why: why.into(),
        }
    }
}

impl From<WriteError> for TransferError {
    fn from(error: WriteError) -> TransferError {
        // the sink notices the wrong bytes, but the source sent them
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

/// Returns the error for a stream that ended after `received` bytes, before the end of the blob.
pub(super) fn truncated(blob: &Descriptor, received: u64) -> HttpError {
    let Descriptor { digest, size, .. } = blob;
    HttpError::new(
        ErrorKind::Network,
        format!("{digest}: the response ended after {received} of {size} bytes"),
    )
}

/// Returns the error for a source whose content has only `received` bytes, fewer than the blob.
pub(super) fn shorter(blob: &Descriptor, received: u64) -> HttpError {
    let Descriptor { digest, size, .. } = blob;
    HttpError::new(
        ErrorKind::Invalid,
        format!("{digest}: received wrong bytes: expected {size} bytes, got {received}"),
    )
}
