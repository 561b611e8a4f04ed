//! The folder for large temporary files.

use landfall_content::ContentError;
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

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

/// The folder for large temporary files: `TMPDIR`, or else `/var/tmp`, since `/tmp` is in memory on
/// many systems.
pub fn scratch_folder() -> PathBuf {
    scratch_folder_of(std::env::var_os("TMPDIR"))
}

/// An empty variable counts as unset.
fn scratch_folder_of(variable: Option<OsString>) -> PathBuf {
    let persistent = Path::new("/var/tmp");
    match variable.filter(|folder| !folder.is_empty()) {
        Some(folder) => folder.into(),
        None if persistent.is_dir() => persistent.into(),
        None => "/tmp".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let unset = scratch_folder_of(None);
        assert!(unset.is_absolute());
        assert_eq!(scratch_folder_of(Some("".into())), unset);
        assert_eq!(scratch_folder_of(Some("/x".into())), Path::new("/x"));
    }
}
