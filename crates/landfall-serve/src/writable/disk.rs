//! Small steps on disk: files that appear whole or not at all, folders that may be absent.

use landfall_content::temporary_file_in;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes a small file by way of a temporary one in `incoming`, so that `path` is never half
/// written.
pub(super) fn write(incoming: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary_file_in(incoming)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    persist(file, path)
}

/// Renames `file` to `path`, and makes the folder for it.
pub(super) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Brings the names in a folder to disk, where the folder exists.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    optional(File::open(folder))?.map_or(Ok(()), |folder| folder.sync_all())
}

/// The names in a folder, sorted; none where the folder does not exist.
pub(super) fn list(folder: &Path) -> io::Result<Vec<String>> {
    let entries = optional(fs::read_dir(folder))?;
    let names = entries
        .into_iter()
        .flatten()
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

/// `None` in place of the error that a file or folder does not exist.
pub(super) fn optional<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
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
