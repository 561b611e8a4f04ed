//! Files of people, replaced so that a killed run leaves the old or the new one. What a file has
//! besides its content stays.

use super::atomic_file::{parent_folder, refuse_special, sync_folder, temporary_file_in};
use rustix::fs::{
    XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr, fsetxattr,
};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;
use tempfile::NamedTempFile;

/// Why a file cannot be replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It has other content than when it was read.
    #[error("it was changed after it was read, and is left as it is now; run the command again")]
    Changed,
}

/// The attribute that access control lists are kept in. With one, the group's bits of the mode are
/// its mask.
const ACL: &str = "system.posix_acl_access";
const GROUP_BITS: u32 = 0o070;

/// Replaces the content of the file at `path` by `new`, if it still is what was read: `is_old`
/// tells. A symbolic link stays one; mode, owner, group, access control lists and extended
/// attributes stay. Returns what could not be kept.
///
/// # Errors
/// When the system refuses, or the file was changed.
pub fn replace_file(
    path: &Path,
    is_old: impl Fn(&[u8]) -> bool,
    new: &[u8],
) -> Result<Vec<String>, ReplaceError> {
    let path = path.canonicalize()?;
    let old = File::open(&path)?;
    let like = old.metadata()?;
    refuse_special(&path)?;
    let file = private(&path, new)?;
    if (like.uid(), like.gid()) != {
        file.as_file()
            .metadata()
            .map(|now| (now.uid(), now.gid()))?
    } {
        fchown(file.as_file(), Some(like.uid()), Some(like.gid()))?;
    }
    let mut lost = Vec::new();
    // after the owner: changing that clears set-id bits
    keep_attributes(&old, &like, file.as_file(), &mut lost)?;
    // what it replaces would be lost with it
    file.as_file().sync_all()?;
    let names = like.nlink().saturating_sub(1);
    if names > 0 {
        lost.push(format!(
            "{names} more of its names (hard links), which have the old content now"
        ));
    }
    if !is_old(&fs::read(&path)?) {
        return Err(ReplaceError::Changed);
    }
    file.persist(&path).map_err(|error| error.error)?;
    sync_folder(parent_folder(&path))?;
    Ok(lost)
}

/// Writes a file that is not there.
///
/// # Errors
/// When the system refuses, or there is one by now.
pub fn create_file(path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    let path = fs::read_link(path).map_or(path.to_owned(), |to| parent_folder(path).join(to));
    let folder = parent_folder(&path);
    let mut file = temporary_file_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(&path)
        .map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => ReplaceError::Changed,
            _ => error.error.into(),
        })?;
    Ok(sync_folder(folder)?)
}

/// Writes a file that comes whole or not at all, whether one is there or not; a file that is there
/// keeps what it has besides its content. What is no plain file, such as a pipe, is written to as
/// it stands.
///
/// # Errors
/// When the system refuses.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    match path.metadata() {
        // /dev/stdout may be a file, which its other writers go on with
        Ok(found) if found.is_file() && !path.starts_with("/dev") => {
            replace_file(path, |_| true, content).map(drop)
        }
        Ok(_) => Ok(fs::write(path, content)?),
        Err(_) => create_file(path, content),
    }
}

/// Writes `content` to `to`, in place of a plain file or of none, with the rights that the file
/// `from` has, but not its owner.
///
/// # Errors
/// When the system refuses.
pub fn write_file_like(from: &Path, to: &Path, content: &[u8]) -> io::Result<()> {
    let from = File::open(from)?;
    refuse_special(to)?;
    let file = private(to, content)?;
    keep_attributes(&from, &from.metadata()?, file.as_file(), &mut Vec::new())?;
    file.persist(to).map(drop).map_err(|error| error.error)
}

/// A temporary file beside `path` with `content`, which nobody else can read yet: it may have
/// passwords in it.
fn private(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(".landfall-")
        .tempfile_in(parent_folder(path))?;
    file.write_all(content)?;
    Ok(file)
}

/// Gives `to` the extended attributes of `from`, and its mode, which is that of `like`. What is
/// impossible is `lost`.
fn keep_attributes(
    from: &File,
    like: &Metadata,
    to: &File,
    lost: &mut Vec<String>,
) -> io::Result<()> {
    let wanted = attributes(from)?;
    // the folder may give its files an access control list
    for name in attributes(to)?
        .iter()
        .filter(|name| *name == ACL && !wanted.contains(name))
    {
        fremovexattr(to, name.as_str())?;
    }
    let mut mode = like.permissions().mode();
    for name in &wanted {
        if copy_attribute(from, to, name).is_ok() {
            continue;
        }
        if name == ACL {
            // the mask would become a right of the group
            mode &= !GROUP_BITS;
            lost.push("its access control list; its group has no rights now".into());
        } else {
            lost.push(format!("its attribute {name}"));
        }
    }
    to.set_permissions(Permissions::from_mode(mode))
}

fn copy_attribute(from: &File, to: &File, name: &str) -> rustix::io::Result<()> {
    let mut value = vec![0; fgetxattr_query(from, name)?];
    let len = fgetxattr(from, name, &mut value[..])?;
    fsetxattr(to, name, &value[..len], XattrFlags::empty())
}

/// The names of the extended attributes of a file; none where its file system has none.
fn attributes(file: &File) -> io::Result<Vec<String>> {
    let list = || -> rustix::io::Result<Vec<u8>> {
        let mut list = vec![0; flistxattr_query(file)?];
        let len = flistxattr(file, &mut list[..])?;
        list.truncate(len);
        Ok(list)
    };
    match list() {
        Ok(list) => {
            let names = list
                .split(|byte| *byte == 0)
                .filter(|name| !name.is_empty());
            Ok(names
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect())
        }
        Err(Errno::NOTSUP | Errno::NOSYS) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_made_meanwhile_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        fs::write(&path, "edited meanwhile").unwrap();
        let replaced = replace_file(&path, |now| now == b"as it was read", b"new");
        assert!(matches!(replaced, Err(ReplaceError::Changed)));
        assert!(matches!(
            create_file(&path, b"new"),
            Err(ReplaceError::Changed)
        ));
        assert_eq!(fs::read_to_string(&path).unwrap(), "edited meanwhile");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_plain_file_is_written_to_as_it_stands() {
        write_file(Path::new("/dev/null"), b"gone").unwrap();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        for content in ["first", "second"] {
            write_file(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_that_leads_nowhere_yet_gets_its_file() {
        let place = tempfile::tempdir().unwrap();
        let (link, file) = (place.path().join("link"), place.path().join("file"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        create_file(&link, b"new").unwrap();
        assert_eq!(fs::read(file).unwrap(), b"new");
    }
}
