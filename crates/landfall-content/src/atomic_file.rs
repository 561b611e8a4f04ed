//! Files on disk: those that appear under their name only when they are complete, and free space.
//!
//! A complete file gets its name in one of these ways:
//!
//! - [`publish_file`] renames a temporary file. It is for files that landfall owns.
//! - [`replace_file`](crate::replace_file) and the functions beside it also keep the attributes of a
//!   file that a user owns, and notice an edit in between.
//! - [`AtomicFile`] writes a long file under a name that shows users what it is, and lets only one
//!   process write it.
//! - A store keeps partial files to resume them, and does not sync a scratch store. A bundle renames
//!   several files that belong together.

use landfall_model::human_size;
pub use landfall_os::{FileStamp, sync_folder};
use landfall_os::{
    free_space, is_at, is_pipe, is_socket, open_locked, public_temporary_file, set_file_mode,
};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Creates a temporary file in `folder`, to be renamed when it is complete. Its permissions follow
/// the umask, as if it had been created under its final name.
///
/// # Errors
/// If it cannot be created.
pub fn temporary_file_in(folder: &Path) -> Result<NamedTempFile> {
    // `tempfile` uses 0600 by default, and the file would keep that after the rename
    public_temporary_file()
        .tempfile_in(folder)
        .map_err(without_temporary_name)
}

/// Creates a temporary file in `folder` that only this user can read: its content may have
/// passwords. [`publish_file`] may give it another mode.
///
/// # Errors
/// If it cannot be created.
pub fn private_file_in(folder: &Path) -> Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".landfall-")
        .tempfile_in(folder)
        .map_err(without_temporary_name)
}

/// Gives a complete temporary file the name `path`, which must be on the same file system. Replaces
/// a file that exists. With `mode`, the file gets these permissions first. The name itself survives
/// a crash only after [`sync_folder`].
///
/// # Errors
/// If the file cannot be synced to disk or renamed.
pub fn publish_file(file: NamedTempFile, path: &Path, mode: Option<u32>) -> Result<()> {
    if let Some(mode) = mode {
        set_file_mode(file.as_file(), mode)?;
    }
    // before the rename: after a crash, the final name must not refer to incomplete content
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Turns the error that a file or folder does not exist into `None`.
///
/// # Errors
/// If `result` is any other error.
pub fn if_exists<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        // `NotADirectory`: a parent is a file, as for `a/b` when only the file `a` exists
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Reads a file of the user's configuration. `None` if there is none: the home folder may be no
/// folder (`HOME=/dev/null`), and container runtimes create a folder in place of a mounted file
/// that does not exist.
pub(crate) fn read_configuration(path: &Path) -> Result<Option<String>> {
    match if_exists(fs::read_to_string(path)) {
        Err(error) if error.kind() == ErrorKind::IsADirectory => Ok(None),
        read => read,
    }
}

/// Removes the path of the file from an error of `tempfile`, because its name is random.
fn without_temporary_name(error: Error) -> Error {
    match error.to_string().split_once(" at path ") {
        Some((cause, _)) => Error::new(error.kind(), cause.to_owned()),
        None => error,
    }
}

/// Refuses to replace anything but a regular file. A rename would silently turn a device, a pipe or
/// a symbolic link into a regular file.
///
/// # Errors
/// If `path` exists and is not a regular file; the message says what it is and what to do.
pub fn refuse_special(path: &Path) -> Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?.file_type(),
    };
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a symbolic link",
        kind if is_pipe(kind) => "a pipe",
        kind if is_socket(kind) => "a socket",
        _ => "a device",
    };
    Err(Error::other(format!(
        "it is {what}, and only a plain file is replaced; name another file"
    )))
}

/// Opens or creates the partial file at `path` and locks it against other processes. Returns `None`
/// if another process holds the lock, or has just completed and renamed the file.
///
/// # Errors
/// If the file cannot be opened or locked.
pub fn lock_partial_file(path: &Path) -> Result<Option<File>> {
    let mut options = File::options();
    // not truncated: a resumed run continues with the content of the partial file
    options.read(true).write(true).create(true).truncate(false);
    let file = open_locked(&mut options, path)?;
    // another process may have completed and renamed it between open and lock: then the name is
    // gone or belongs to another file
    Ok(file.filter(|file| is_at(file, path).unwrap_or(false)))
}

/// A file `OUT.partial` that is renamed to `OUT` when it is complete. Dropping it before that
/// removes the partial file.
pub struct AtomicFile {
    partial: PathBuf,
    out: PathBuf,
    file: File,
    is_complete: bool,
}

impl AtomicFile {
    /// Creates the partial file for `out`.
    ///
    /// # Errors
    /// If `out` exists and is not a regular file, another process is writing it, or the partial
    /// file cannot be created.
    pub fn begin(out: &Path) -> Result<AtomicFile> {
        let mut partial = out.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        refuse_special(out)?;
        refuse_special(&partial)?;
        let file = lock_partial_file(&partial)?
            .ok_or_else(|| Error::other("another process is writing it"))?;
        // truncated only under the lock: before, another process may have been writing it
        file.set_len(0)?;
        Ok(AtomicFile {
            partial,
            out: out.into(),
            file,
            is_complete: false,
        })
    }

    /// Returns the open partial file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the file to disk and renames it.
    ///
    /// # Errors
    /// If it cannot be synced or renamed.
    pub fn finish(mut self) -> Result<()> {
        // before the rename: after a crash, the final name must not refer to incomplete content
        self.file.sync_all()?;
        fs::rename(&self.partial, &self.out)?;
        self.is_complete = true;
        sync_folder(parent_folder(&self.out))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_complete {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Returns the folder of a file, `.` for a bare file name.
pub fn parent_folder(file: &Path) -> &Path {
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

// Free disk space, compared with what a run needs.

/// The disk space that a run needs in a folder, and how much is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSpace {
    /// The folder that is written to; it may not exist yet.
    pub folder: PathBuf,
    /// The upper bound of the needed space, in bytes.
    pub needed: u64,
    /// How many bytes this user can still write there, if the file system says it.
    pub free: Option<u64>,
}

impl DiskSpace {
    /// Measures the free space of the file system that holds `folder`, or would hold it.
    ///
    /// # Errors
    /// If the file system cannot be queried.
    pub fn measure(folder: &Path, needed: u64) -> io::Result<DiskSpace> {
        let absolute = std::path::absolute(folder)?;
        let existing = absolute
            .ancestors()
            // the nearest existing parent is on the file system that the folder will be created on
            .find(|folder| folder.exists())
            .unwrap_or(&absolute);
        Ok(DiskSpace {
            folder: folder.into(),
            needed,
            free: free_space(existing)?,
        })
    }

    /// Whether the free space suffices, as far as it is known.
    pub fn is_enough(&self) -> bool {
        self.free.is_none_or(|free| self.needed <= free)
    }

    /// The free space, for messages.
    pub fn shown_free(&self) -> String {
        self.free
            .map_or_else(|| "unknown space".to_owned(), human_size)
    }
}

impl fmt::Display for DiskSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "needs at most {} in {}, which has {} free",
            human_size(self.needed),
            self.folder.display(),
            self.shown_free()
        )
    }
}

// Blobs as ranges of files, which the kernel can send.

/// A contiguous range of a file that holds bytes of a blob.
#[derive(Debug, Clone)]
pub struct FileRun {
    /// The file, opened for reading.
    pub file: Arc<File>,
    /// The offset of the range in the file.
    pub at: u64,
    /// The length of the range in bytes, at least 1.
    pub length: u64,
}

/// The runs of a blob in order. Each run is checked before it is returned. An error ends the
/// iterator.
pub type FileRuns = Box<dyn Iterator<Item = io::Result<FileRun>> + Send>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_a_regular_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        refuse_special(&path).unwrap();
        fs::write(&path, "x").unwrap();
        refuse_special(&path).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for (special, what) in [
            (link.as_path(), "link"),
            (dir.path(), "folder"),
            (Path::new("/dev/null"), "device"),
        ] {
            assert!(
                refuse_special(special)
                    .unwrap_err()
                    .to_string()
                    .contains(what),
                "{what}"
            );
        }
    }

    #[test]
    fn an_error_does_not_name_the_temporary_file() {
        let error = temporary_file_in(Path::new("/nowhere")).unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
    }

    #[test]
    fn a_file_appears_complete_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        fs::write(&out, "old").unwrap();
        let write = |text: &str| {
            let file = AtomicFile::begin(&out).unwrap();
            file.file().write_all(text.as_bytes()).unwrap();
            file
        };
        let incomplete = write("half");
        assert!(
            AtomicFile::begin(&out)
                .is_err_and(|error| error.to_string().contains("another process"))
        );
        drop(incomplete);
        assert_eq!(fs::read(&out).unwrap(), b"old");
        write("new").finish().unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_has_the_free_space_of_its_file_system() {
        let dir = tempfile::tempdir().unwrap();
        let space = DiskSpace::measure(&dir.path().join("a/b"), 1).unwrap();
        let of_parent = DiskSpace::measure(dir.path(), 1).unwrap().free.unwrap();
        // other processes write to the disk meanwhile
        assert!(space.free.unwrap().abs_diff(of_parent) < 4 << 30);
        assert!(
            space.is_enough()
                && !DiskSpace::measure(dir.path(), u64::MAX)
                    .unwrap()
                    .is_enough()
        );
    }
}
