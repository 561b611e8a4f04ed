//! Replaces files that users own, such as the lock, manifests and reports. A killed run leaves
//! either the old or the new file, and mode, owner and attributes are preserved.

use super::atomic_file::{
    parent_folder, private_file_in, refuse_special, sync_folder, temporary_file_in,
};
use landfall_model::document::output_descriptor;
use landfall_model::report::count_of;
use landfall_os::{Blocking, copy_attributes, hard_links, too_many_links};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The cause of an error if the file has changed since it was read, or the file to create exists by
/// now.
#[derive(Debug, thiserror::Error)]
#[error("it was changed after it was read, so landfall did not replace it; run the command again")]
pub struct FileChanged;

/// Whether a `T` is the cause of `error`.
pub fn is_caused_by<T: Error + 'static>(error: &io::Error) -> bool {
    let cause = error.get_ref();
    cause.is_some_and(<dyn Error + Send + Sync>::is::<T>)
}

impl From<FileChanged> for io::Error {
    fn from(changed: FileChanged) -> io::Error {
        io::Error::other(changed)
    }
}

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
) -> io::Result<Vec<String>> {
    // the target of a symbolic link is replaced, so that the link is kept
    let path = path.canonicalize()?;
    let old = File::open(&path)?;
    refuse_special(&path)?;
    let file = private_file(&path, new)?;
    let mut lost = copy_attributes(&old, file.as_file(), Some(path.as_path()))?;
    // before the rename: otherwise, a crash could lose both the old and the new content
    file.as_file().sync_all()?;
    let other_names = hard_links(&old)?.saturating_sub(1);
    // Windows does not replace an open file
    drop(old);
    if other_names > 0 {
        lost.push(format!(
            "{}, which still {} the old content",
            count_of(other_names as usize, "hard link"),
            if other_names == 1 { "has" } else { "have" }
        ));
    }
    // as late as possible, so that an edit made meanwhile is noticed
    check_unchanged(&path, is_old)?;
    file.persist(&path)?;
    sync_folder(parent_folder(&path))?;
    Ok(lost)
}

/// Checks that `is_old` accepts the present content of the file at `path`, which need not be
/// replaced.
///
/// # Errors
/// If the file was changed meanwhile, or cannot be read.
pub fn check_unchanged(path: &Path, is_old: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    if is_old(&fs::read(path)?) {
        Ok(())
    } else {
        Err(FileChanged.into())
    }
}

/// Creates a file. If `path` is a dangling symbolic link, creates the file that it points to.
///
/// # Errors
/// If the file exists by now, or cannot be created.
pub fn create_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = link_target(path)?;
    let folder = parent_folder(&path);
    let file = temporary_file_in(folder)?;
    // not to `file` itself, whose errors contain its random name
    file.as_file().write_all(content)?;
    file.as_file().sync_all()?;
    let named = match file.persist_noclobber(&path) {
        Err(refused) if refused.error.kind() != io::ErrorKind::AlreadyExists => {
            // without hard links, as on some shares, only a new file can take the name
            File::create_new(&path).map(drop).and_then(|()| {
                refused.file.persist(&path).map_err(|refused| {
                    // the next run would read the empty file as a damaged one
                    let _ = fs::remove_file(&path);
                    refused.error
                })
            })
        }
        named => named.map_err(|refused| refused.error),
    };
    named.map_err(|error| match error.kind() {
        // the file exists by now
        io::ErrorKind::AlreadyExists => FileChanged.into(),
        _ => error,
    })?;
    sync_folder(folder)
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
    Err(too_many_links())
}

/// Creates or replaces a file in one step, preserving mode, owner and attributes of an existing
/// one. If [`is_written_in_place`], the file is written to instead; one that is open already, such
/// as `/dev/stdout`, keeps what was written to it before.
///
/// # Errors
/// If the file cannot be written.
pub fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    match output_descriptor(path) {
        Some(1) => {
            let mut stdout = Blocking(io::stdout().lock());
            stdout.write_all(content)?;
            stdout.flush()
        }
        Some(2) => Blocking(io::stderr().lock()).write_all(content),
        Some(_) => File::options().append(true).open(path)?.write_all(content),
        None if is_written_in_place(path) => fs::write(path, content),
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
/// `merge` fails with [`FileChanged`], the content is read and merged again.
pub fn merge_into_file(
    path: &Path,
    mut merge: impl FnMut(Option<&[u8]>) -> io::Result<String>,
) -> io::Result<Vec<String>> {
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
            Err(error) => Err(error),
        };
        if !written.as_ref().is_err_and(is_caused_by::<FileChanged>) {
            return written;
        }
    }
    Err(FileChanged.into())
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
/// owner. It is not synced to disk: a command may write thousands of these files, and can write
/// them again.
///
/// # Errors
/// If `to` is not a regular file, or one of the files cannot be accessed.
pub fn write_file_like(from: &Path, to: &Path, content: &[u8]) -> io::Result<()> {
    let from = File::open(from)?;
    refuse_special(to)?;
    let file = private_file(to, content)?;
    copy_attributes(&from, file.as_file(), None)?;
    drop(from);
    file.persist(to)?;
    Ok(())
}

/// Creates a private temporary file with this content next to `path`.
fn private_file(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let file = private_file_in(parent_folder(path))?;
    file.as_file().write_all(content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::collections::BTreeSet;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

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
        let refused = merge_into_file(&path, |_| Err(FileChanged.into()));
        assert!(is_caused_by::<FileChanged>(&refused.unwrap_err()));

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
        assert!(is_caused_by::<FileChanged>(&replaced.unwrap_err()));
        let created = create_file(&path, b"new");
        assert!(is_caused_by::<FileChanged>(&created.unwrap_err()));
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
        let code = error.raw_os_error();
        assert_eq!(code, Some(Errno::LOOP.raw_os_error()), "{error}");
    }
}
