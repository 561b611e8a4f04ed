//! Files that come whole or not at all, in place of what had their name.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A temporary file in `folder` that is renamed when it is whole. Its permissions are those that
/// the umask leaves to a new file, as if it had been made under its name.
///
/// # Errors
/// When it cannot be made.
pub fn temporary_file_in(folder: &Path) -> Result<NamedTempFile> {
    tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

/// Refuses to replace what is no regular file: a device, a pipe or a link would be gone, and a
/// plain file in its place.
///
/// # Errors
/// What stands at `path`, and what to do.
pub fn refuse_special(path: &Path) -> Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?.file_type(),
    };
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(Error::other(format!(
        "it is {what}, and only a plain file is replaced; name another file"
    )))
}

/// Opens or creates the unfinished file at `path`, and locks it against other processes. `None`
/// where another one has it, or just gave it its name.
///
/// # Errors
/// When the system refuses.
pub fn lock_partial_file(path: &Path) -> Result<Option<File>> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // another process may have finished and renamed it between open and lock
    let same = fs::metadata(path).and_then(|named| Ok(named.ino() == file.metadata()?.ino()));
    Ok(same.unwrap_or(false).then_some(file))
}

/// `OUT.partial`, which gets the name `OUT` when it is whole. Where it does not, nothing is left of
/// it.
pub struct AtomicFile {
    partial: PathBuf,
    out: PathBuf,
    file: File,
    is_whole: bool,
}

impl AtomicFile {
    /// Begins a file that will replace what is at `out`.
    ///
    /// # Errors
    /// When something other than a plain file is there, another process writes it, or the system
    /// refuses.
    pub fn begin(out: &Path) -> Result<AtomicFile> {
        let mut partial = out.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        refuse_special(out)?;
        refuse_special(&partial)?;
        let file = lock_partial_file(&partial)?
            .ok_or_else(|| Error::other("another process is writing it"))?;
        file.set_len(0)?;
        Ok(AtomicFile {
            partial,
            out: out.into(),
            file,
            is_whole: false,
        })
    }

    /// Where it is written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives it its name when it is on disk.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn finish(mut self) -> Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.partial, &self.out)?;
        self.is_whole = true;
        sync_folder(parent_folder(&self.out))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_whole {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// The folder that a file lies in.
pub fn parent_folder(file: &Path) -> &Path {
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Brings the names in a folder to disk.
///
/// # Errors
/// When the system refuses.
pub fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_a_plain_file_is_replaced() {
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
    fn a_file_comes_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        fs::write(&out, "old").unwrap();
        let write = |text: &str| {
            let under_way = AtomicFile::begin(&out).unwrap();
            under_way.file().write_all(text.as_bytes()).unwrap();
            under_way
        };
        let under_way = write("half");
        assert!(
            AtomicFile::begin(&out)
                .is_err_and(|error| error.to_string().contains("another process"))
        );
        drop(under_way);
        assert_eq!(fs::read(&out).unwrap(), b"old");
        write("new").finish().unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
