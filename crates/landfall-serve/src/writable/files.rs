//! File operations: files that appear completely or not at all, and folders that may be missing.

use landfall_content::temporary_file_in;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes a small file through a temporary file in `incoming`, so that `path` is never incomplete.
pub(super) fn write_file(incoming: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary_file_in(incoming)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    persist(file, path)
}

/// Renames `file` to `path`. Creates the folder of `path` if it is missing.
pub(super) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    // created with the first file, so that a repository to which nothing was pushed has no folder
    fs::create_dir_all(folder)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Syncs the names in a folder to disk; a missing folder has none.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    match optional(File::open(folder))? {
        Some(folder) => folder.sync_all(),
        None => Ok(()),
    }
}

/// The names in a folder, sorted; empty if the folder does not exist.
pub(super) fn list_folder(folder: &Path) -> io::Result<Vec<String>> {
    let Some(entries) = optional(fs::read_dir(folder))? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Turns the error that a file or folder does not exist into `None`.
pub(super) fn optional<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        // ENOTDIR: a parent is a file, as for `a/b` when only the file `a` exists
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
