//! Replaces files that users own, such as the lock, manifests and reports. A killed run leaves
//! either the old or the new file, and mode, owner and attributes are preserved.

use super::atomic_file::{
    parent_folder, private_file_in, refuse_special, sync_folder, temporary_file_in,
};
use landfall_model::document::output_descriptor;
use landfall_model::report::count_of;
use rustix::fs::{
    XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr, fsetxattr,
};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Why a file cannot be replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has changed since it was read, or the file to create exists by now.
    #[error(
        "it was changed after it was read, so landfall did not replace it; run the command again"
    )]
    Changed,
}

/// The extended attribute that holds the access control list. If a file has one, the group bits of
/// its mode are the mask of the list, not rights of the group.
const ACL: &str = "system.posix_acl_access";
const GROUP_BITS: u32 = 0o070;
/// The number of symbolic links that Linux follows for a path (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// Replaces the content of the file at `path` with `new`, provided that `is_old` accepts the
/// present content. Symbolic links are followed; mode, owner, group, access control list and
/// extended attributes are preserved. Returns the attributes that could not be preserved, for a
/// warning.
///
/// # Errors
/// If the file was changed meanwhile, or cannot be replaced.
pub fn replace_file(
    path: &Path,
    is_old: impl Fn(&[u8]) -> bool,
    new: &[u8],
) -> Result<Vec<String>, ReplaceError> {
    // the target of a symbolic link is replaced, so that the link is kept
    let path = path.canonicalize()?;
    let old = File::open(&path)?;
    let metadata = old.metadata()?;
    refuse_special(&path)?;
    let file = private_file(&path, new)?;
    let created = file.as_file().metadata()?;
    if metadata.uid() != created.uid() || metadata.gid() != created.gid() {
        fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
    }
    let mut lost = Vec::new();
    // after the owner, because a change of owner clears the set-user-ID and set-group-ID bits
    copy_attributes(&old, &metadata, file.as_file(), &mut lost)?;
    // before the rename: otherwise, a crash could lose both the old and the new content
    file.as_file().sync_all()?;
    let other_names = metadata.nlink().saturating_sub(1);
    if other_names > 0 {
        lost.push(format!(
            "{}, which still {} the old content",
            count_of(other_names as usize, "hard link"),
            if other_names == 1 { "has" } else { "have" }
        ));
    }
    // as late as possible, so that an edit made meanwhile is noticed
    check_unchanged(&path, is_old)?;
    file.persist(&path).map_err(io::Error::from)?;
    sync_folder(parent_folder(&path))?;
    Ok(lost)
}

/// Checks that `is_old` accepts the present content of the file at `path`, which need not be
/// replaced.
///
/// # Errors
/// If the file was changed meanwhile, or cannot be read.
pub fn check_unchanged(path: &Path, is_old: impl Fn(&[u8]) -> bool) -> Result<(), ReplaceError> {
    if is_old(&fs::read(path)?) {
        Ok(())
    } else {
        Err(ReplaceError::Changed)
    }
}

/// Creates a file. If `path` is a dangling symbolic link, creates the file that it points to.
///
/// # Errors
/// If the file exists by now, or cannot be created.
pub fn create_file(path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    let path = link_target(path)?;
    let folder = parent_folder(&path);
    let mut file = temporary_file_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(&path)
        // `persist_noclobber` fails if the file exists by now
        .map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => ReplaceError::Changed,
            _ => error.error.into(),
        })?;
    Ok(sync_folder(folder)?)
}

/// Returns the path that a chain of symbolic links leads to; it need not exist.
fn link_target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = parent_folder(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

/// Creates or replaces a file in one step, preserving mode, owner and attributes of an existing
/// one. If [`is_written_in_place`], the file is written to instead; one that is open already, such
/// as `/dev/stdout`, keeps what was written to it before.
///
/// # Errors
/// If the file cannot be written.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    match output_descriptor(path) {
        Some(1) => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(content)?;
            Ok(stdout.flush()?)
        }
        Some(2) => Ok(io::stderr().lock().write_all(content)?),
        Some(_) => Ok(File::options()
            .append(true)
            .open(path)?
            .write_all(content)?),
        None if is_written_in_place(path) => Ok(fs::write(path, content)?),
        None if path.exists() => replace_file(path, |_| true, content).map(drop),
        None => create_file(path, content),
    }
}

/// How often [`merge_into_file`] merges again because another process has changed the file.
const MERGE_ATTEMPTS: usize = 5;

/// Creates or replaces the file at `path` with what `merge` makes of its present content, or of
/// `None` if there is none. If another process changes the file in between, merges again. A file
/// that [`is_written_in_place`] is not read. Returns what was lost, like [`replace_file`].
///
/// # Errors
/// If the file cannot be read or written, another process keeps changing it, or `merge` fails. If
/// `merge` fails with [`ReplaceError::Changed`], the content is read and merged again.
pub fn merge_into_file(
    path: &Path,
    mut merge: impl FnMut(Option<&[u8]>) -> Result<String, ReplaceError>,
) -> Result<Vec<String>, ReplaceError> {
    if is_written_in_place(path) {
        return write_file(path, merge(None)?.as_bytes()).map(|()| Vec::new());
    }
    for _ in 0..MERGE_ATTEMPTS {
        let written = match fs::read(path) {
            Ok(old) => merge(Some(&old))
                .and_then(|new| replace_file(path, |now| now == old, new.as_bytes())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => merge(None)
                .and_then(|new| create_file(path, new.as_bytes()))
                .map(|()| Vec::new()),
            Err(error) => Err(error.into()),
        };
        if !matches!(written, Err(ReplaceError::Changed)) {
            return written;
        }
    }
    Err(ReplaceError::Changed)
}

/// Whether [`write_file`] writes to the file at `path` instead of replacing it: the file is not
/// regular, such as a pipe, or is below `/proc` or `/dev`, except `/dev/shm`.
pub fn is_written_in_place(path: &Path) -> bool {
    // /dev/stdout may be a regular file, which the shell keeps writing to after us, and a mounted
    // file such as /dev/termination-log cannot be replaced
    let keeps_files =
        (path.starts_with("/dev") && !path.starts_with("/dev/shm")) || path.starts_with("/proc");
    path.metadata()
        .is_ok_and(|found| keeps_files || !found.is_file())
}

/// Creates or replaces the regular file `to`, with mode and attributes of `from`, but not its
/// owner.
///
/// # Errors
/// If `to` is not a regular file, or one of the files cannot be accessed.
pub fn write_file_like(from: &Path, to: &Path, content: &[u8]) -> io::Result<()> {
    let from = File::open(from)?;
    refuse_special(to)?;
    let file = private_file(to, content)?;
    copy_attributes(&from, &from.metadata()?, file.as_file(), &mut Vec::new())?;
    file.persist(to)?;
    Ok(())
}

/// Creates a private temporary file with this content next to `path`.
fn private_file(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = private_file_in(parent_folder(path))?;
    file.write_all(content)?;
    Ok(file)
}

/// Copies the extended attributes of `from` and the mode in `metadata` to `to`. Attributes that
/// cannot be copied are added to `lost`.
fn copy_attributes(
    from: &File,
    metadata: &Metadata,
    to: &File,
    lost: &mut Vec<String>,
) -> io::Result<()> {
    let wanted = attributes(from)?;
    // the folder may have given the new file a default access control list
    for name in attributes(to)?
        .iter()
        .filter(|name| *name == ACL && !wanted.contains(name))
    {
        fremovexattr(to, name.as_str())?;
    }
    let mut mode = metadata.permissions().mode();
    for name in &wanted {
        if copy_attribute(from, to, name).is_ok() {
            continue;
        }
        if name == ACL {
            // without the list, its mask would become the rights of the group
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

/// Returns the names of the extended attributes of a file; none if its file system has no such
/// attributes.
fn attributes(file: &File) -> io::Result<Vec<String>> {
    let list = match attribute_list(file) {
        Ok(list) => list,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    Ok(list
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

/// Returns the names of the extended attributes of a file, each with a NUL at its end.
fn attribute_list(file: &File) -> rustix::io::Result<Vec<u8>> {
    let mut list = vec![0; flistxattr_query(file)?];
    let length = flistxattr(file, &mut list[..])?;
    list.truncate(length);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_change_in_between_is_merged_too_and_a_pipe_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        let text = |old: Option<&[u8]>| String::from_utf8_lossy(old.unwrap_or(b"none")).into();
        let mut others = ["first", "second"].into_iter();
        let merged = merge_into_file(&path, |old| {
            let merged: String = text(old);
            if let Some(other) = others.next() {
                fs::write(&path, other)?;
            }
            Ok(merged + "+")
        });
        assert!(merged.unwrap().is_empty());
        assert_eq!(fs::read_to_string(&path).unwrap(), "second+");
        let refused = merge_into_file(&path, |_| Err(ReplaceError::Changed));
        assert!(matches!(refused, Err(ReplaceError::Changed)));

        let pipe = place.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        merge_into_file(&pipe, |old| Ok(text(old))).unwrap();
        assert_eq!(reader.join().unwrap(), "none");
    }

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
    fn a_device_is_written_to_and_a_file_is_replaced() {
        write_file(Path::new("/dev/null"), b"gone").unwrap();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        let mut before = Vec::new();
        for content in ["first", "second"] {
            write_file(&path, content.as_bytes()).unwrap();
            // open until the end, so that no inode is used again
            let mut file = File::open(&path).unwrap();
            let mut found = String::new();
            file.read_to_string(&mut found).unwrap();
            assert_eq!(found, content);
            before.push(file);
        }
        let inodes = before.iter().map(|file| file.metadata().unwrap().ino());
        assert_eq!(inodes.collect::<BTreeSet<_>>().len(), 2, "written in place");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_open_file_is_appended_to() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"first\n").unwrap();
        let number = file.as_raw_fd();
        for folder in ["/dev/fd", "/proc/self/fd"] {
            let opened = PathBuf::from(format!("{folder}/{number}"));
            assert!(is_written_in_place(&opened), "{folder}");
            write_file(&opened, b"next\n").unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"first\nnext\nnext\n");
        let inodes = [file.metadata().unwrap(), path.metadata().unwrap()].map(|found| found.ino());
        assert_eq!(inodes[0], inodes[1], "replaced");
    }

    #[test]
    fn the_target_of_dangling_links_is_created() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("link");
        let file = place.path().join("file");
        std::os::unix::fs::symlink("file", &link).unwrap();
        let link_to_link = place.path().join("link-to-link");
        std::os::unix::fs::symlink(&link, &link_to_link).unwrap();
        create_file(&link_to_link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        fs::remove_file(&file).unwrap();
        create_file(&link, b"newer").unwrap();
        assert_eq!(fs::read(file).unwrap(), b"newer");
    }

    #[test]
    fn links_in_a_circle_are_an_error() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink("link", &link).unwrap();
        let error = write_file(&link, b"new").unwrap_err();
        let code = match &error {
            ReplaceError::Io(error) => error.raw_os_error(),
            ReplaceError::Changed => None,
        };
        assert_eq!(code, Some(Errno::LOOP.raw_os_error()), "{error}");
    }
}
