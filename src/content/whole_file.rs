//! Files that come whole or not at all, in place of what had their name.

use std::fs::{self, File, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// A temporary file in `folder` that is renamed when it is whole. Its permissions are those that the umask leaves to a
/// new file, as if it had been made under its name.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn temporary_in(folder: &Path) -> Result<NamedTempFile> {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
}

/// Refuses to replace what is no regular file: a device, a pipe or a link would be gone, and a plain file in its place.
///
/// # Errors
/// What stands at `path`, and what to do.
pub(crate) fn refuse_special(path: &Path) -> Result<()> {
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
    Err(Error::other(format!("it is {what}, and only a plain file is replaced; name another file")))
}

/// Brings the names in a folder to disk.
///
/// # Errors
/// When the system refuses.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        refuse_special(&path).unwrap();
        fs::write(&path, "x").unwrap();
        refuse_special(&path).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for (special, what) in
            [(link.as_path(), "link"), (dir.path(), "folder"), (Path::new("/dev/null"), "device")]
        {
            assert!(refuse_special(special).unwrap_err().to_string().contains(what), "{what}");
        }
    }
}
