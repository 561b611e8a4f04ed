//! Files: access at an offset, identity, locks, kinds, free space and names.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

#[cfg(unix)]
use std::fs::TryLockError;
#[cfg(unix)]
pub use std::os::unix::fs::FileExt;
#[cfg(windows)]
pub use windows::{FileExt, open_locked, wait_locked};

/// Identifies a file and its content at one moment. What is known of the content is valid as long
/// as inode, modification time and size stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// The inode number of the file on its disk. A file that replaces another one under its name
    /// has another number, even if its time was set back.
    pub inode: u64,
    /// The time of the last modification, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// The size of the file in bytes.
    pub size: u64,
}

#[cfg(unix)]
impl FileStamp {
    /// Returns the stamp of an open file.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn of(file: &File) -> Result<FileStamp> {
        file.metadata().map(|metadata| FileStamp::from(&metadata))
    }

    /// Returns the stamp of the file at `path`. Follows symbolic links.
    ///
    /// # Errors
    /// If there is no file, or the system refuses.
    pub fn at(path: &Path) -> Result<FileStamp> {
        std::fs::metadata(path).map(|metadata| FileStamp::from(&metadata))
    }
}

#[cfg(unix)]
impl From<&Metadata> for FileStamp {
    fn from(metadata: &Metadata) -> FileStamp {
        use std::os::unix::fs::MetadataExt;
        FileStamp {
            inode: metadata.ino(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            size: metadata.len(),
        }
    }
}

/// Returns the number of names of an open file, that is hard links.
///
/// # Errors
/// If the system refuses.
pub fn hard_links(file: &File) -> Result<u64> {
    #[cfg(unix)]
    return Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?));
    #[cfg(windows)]
    return Ok(winapi_util::file::information(file)?.number_of_links());
}

/// Whether the open `file` is the one at `path`, and not one that has replaced it.
///
/// # Errors
/// If there is no file at `path`, or the system refuses.
pub fn is_at(file: &File, path: &Path) -> Result<bool> {
    Ok(FileStamp::at(path)?.inode == FileStamp::of(file)?.inode)
}

/// Opens a file for writing and locks it against other processes, which may still read it. Returns
/// `None` if another process has locked it. The lock ends when the file is closed.
///
/// # Errors
/// If the file cannot be opened or locked.
#[cfg(unix)]
pub fn open_locked(options: &mut OpenOptions, path: &Path) -> Result<Option<File>> {
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Like [`open_locked`], but calls `on_wait` and waits if another process has locked the file.
///
/// # Errors
/// If the file cannot be opened or locked.
#[cfg(unix)]
pub fn wait_locked(options: &mut OpenOptions, path: &Path, on_wait: impl FnOnce()) -> Result<File> {
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            on_wait();
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

/// Lets `options` open a pipe or a device without waiting for its other end. Has no effect on
/// regular files.
pub fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}

/// Whether a file is a named pipe. On Windows, these have names of their own and are no files.
pub fn is_pipe(kind: FileType) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_fifo(&kind);
    #[cfg(windows)]
    return {
        let _ = kind;
        false
    };
}

/// Whether a file is a socket. On Windows, a socket cannot be told from a file.
pub fn is_socket(kind: FileType) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_socket(&kind);
    #[cfg(windows)]
    return {
        let _ = kind;
        false
    };
}

/// Returns how many bytes a file occupies on its disk; it may have holes. On Windows, this is the
/// size: a file without the attribute for it has no holes.
pub fn allocated_bytes(metadata: &Metadata) -> u64 {
    #[cfg(unix)]
    // st_blocks counts units of 512 bytes, whatever the block size is
    return std::os::unix::fs::MetadataExt::blocks(metadata) * 512;
    #[cfg(windows)]
    return metadata.len();
}

/// Frees the disk space of a part of a file, whose bytes are zero afterwards.
///
/// # Errors
/// If the file system has no holes. Only Linux has this function.
pub fn punch_hole(file: &File, at: u64, length: u64) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(file, hole, at, length)?)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, at, length);
        Err(ErrorKind::Unsupported.into())
    }
}

/// Syncs a folder to disk, so that the names of new and renamed files survive a crash. Windows
/// writes them to the journal of its file system instead, and has no function for this. Some file
/// systems, such as SMB shares and shared folders of virtual machines, have none either.
///
/// # Errors
/// If the folder cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> Result<()> {
    #[cfg(unix)]
    return match File::open(folder)?.sync_all() {
        // `EINVAL`: the file system does not sync folders
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    };
    #[cfg(windows)]
    return folder.metadata().map(drop);
}

/// Returns how many bytes this user can write to the file system of `path`, which must exist.
/// `None` if the file system does not say, as some that are not on a disk (FUSE), and those without
/// limit.
///
/// # Errors
/// If the file system cannot be queried.
pub fn free_space(path: &Path) -> Result<Option<u64>> {
    #[cfg(unix)]
    {
        let stats = match rustix::fs::statvfs(path) {
            Err(rustix::io::Errno::NOSYS) => return Ok(None),
            stats => stats?,
        };
        // `f_bavail`, not `f_bfree`: the blocks reserved for root are not available to this user
        let free = stats.f_bavail.saturating_mul(stats.f_frsize);
        // a full disk has blocks
        Ok((stats.f_blocks > 0).then_some(free))
    }
    #[cfg(windows)]
    return fs4::available_space(path).map(Some);
}

/// Checks that this user may write to a file, or create files in a folder.
///
/// # Errors
/// If the system refuses it.
pub fn check_writable(path: &Path) -> Result<()> {
    #[cfg(unix)]
    return Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?);
    #[cfg(windows)]
    {
        // access control lists are not in the attributes, so only an attempt shows it
        if path.is_dir() {
            tempfile::Builder::new()
                .tempfile_in(path)
                .map(drop)
                .map_err(|error| Error::from(error.kind()))
        } else {
            File::options().append(true).open(path).map(drop)
        }
    }
}

/// Returns stdout as a file. It is a duplicate, which may be closed.
///
/// # Errors
/// If the system refuses, for example because stdout is closed.
pub fn stdout_file() -> Result<File> {
    #[cfg(unix)]
    return std::os::fd::AsFd::as_fd(&std::io::stdout())
        .try_clone_to_owned()
        .map(File::from);
    #[cfg(windows)]
    return std::os::windows::io::AsHandle::as_handle(&std::io::stdout())
        .try_clone_to_owned()
        .map(File::from);
}

/// A stream that waits where it would fail because its other end is slow. Another program may have
/// set a pipe or a terminal to not block, for all programs that share it, as Node.js and ssh do.
pub struct Blocking<W>(pub W);

/// The pause before a stream whose other end is slow is tried again.
const STREAM_PAUSE: Duration = Duration::from_millis(1);

impl<R: Read> Read for Blocking<R> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        waiting(|| self.0.read(bytes))
    }
}

impl<W: Write> Write for Blocking<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        waiting(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        waiting(|| self.0.flush())
    }
}

/// Calls `act` until it does not fail with `WouldBlock`.
fn waiting<T>(mut act: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match act() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(STREAM_PAUSE),
            done => return done,
        }
    }
}

/// Whether stdout, a terminal, shows colours: on Windows, older terminals do not.
pub fn has_colours() -> bool {
    #[cfg(unix)]
    return true;
    #[cfg(windows)]
    return winapi_util::console::Console::stdout()
        .and_then(|mut console| console.set_virtual_terminal_processing(true))
        .is_ok();
}

/// Returns a file name that has these bytes in a document; `None` if the system has no such name.
pub fn file_name(bytes: &[u8]) -> Option<Cow<'_, OsStr>> {
    #[cfg(unix)]
    return Some(Cow::Borrowed(std::os::unix::ffi::OsStrExt::from_bytes(
        bytes,
    )));
    #[cfg(windows)]
    return std::str::from_utf8(bytes)
        .ok()
        .map(|name| Cow::Borrowed(OsStr::new(name)));
}

/// Returns the error of a chain of symbolic links without an end.
pub fn too_many_links() -> Error {
    #[cfg(unix)]
    return rustix::io::Errno::LOOP.into();
    #[cfg(windows)]
    return Error::other("too many levels of symbolic links");
}

#[cfg(windows)]
mod windows {
    use super::FileStamp;
    use std::fs::{File, OpenOptions};
    use std::io::{ErrorKind, Result};
    use std::os::windows::fs::{FileExt as Positioned, OpenOptionsExt};
    use std::path::Path;
    use std::time::Duration;

    /// Access at an offset, by the names of Unix. On Windows it also moves the position of the
    /// file, so nobody may use that at the same time.
    pub trait FileExt {
        /// Reads bytes at `offset`, and returns their number.
        ///
        /// # Errors
        /// If the system refuses.
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

        /// Writes bytes at `offset`, and returns their number.
        ///
        /// # Errors
        /// If the system refuses.
        fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize>;

        /// Fills `buffer` with the bytes at `offset`.
        ///
        /// # Errors
        /// If the file ends before, or the system refuses.
        fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<()> {
            while !buffer.is_empty() {
                match self.read_at(buffer, offset) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(count) => {
                        buffer = &mut buffer[count..];
                        offset += count as u64;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }

        /// Writes all of `bytes` at `offset`.
        ///
        /// # Errors
        /// If the system refuses.
        fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> Result<()> {
            while !bytes.is_empty() {
                match self.write_at(bytes, offset) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(count) => {
                        bytes = &bytes[count..];
                        offset += count as u64;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }

    impl FileExt for File {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
            self.seek_read(buffer, offset)
        }

        fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize> {
            self.seek_write(bytes, offset)
        }
    }

    /// The seconds from 1601, where Windows begins to count, to 1970.
    const EPOCH: i64 = 11_644_473_600;
    /// The units of a time of Windows in a second, and the nanoseconds in a unit.
    const UNITS: i64 = 10_000_000;
    const NANOSECONDS: i64 = 100;
    /// The right to read the attributes of a file (`FILE_READ_ATTRIBUTES`).
    const READ_ATTRIBUTES: u32 = 0x80;
    /// The flag to open folders too (`FILE_FLAG_BACKUP_SEMANTICS`).
    const ALSO_FOLDERS: u32 = 0x0200_0000;

    impl FileStamp {
        /// Returns the stamp of an open file.
        ///
        /// # Errors
        /// If the system refuses.
        pub fn of(file: &File) -> Result<FileStamp> {
            let found = winapi_util::file::information(file)?;
            let modified = found.last_write_time().unwrap_or(0).cast_signed();
            Ok(FileStamp {
                inode: found.file_index(),
                mtime: (
                    modified.div_euclid(UNITS) - EPOCH,
                    modified.rem_euclid(UNITS) * NANOSECONDS,
                ),
                size: found.file_size(),
            })
        }

        /// Returns the stamp of the file at `path`. Follows symbolic links.
        ///
        /// # Errors
        /// If there is no file, or the system refuses.
        pub fn at(path: &Path) -> Result<FileStamp> {
            let mut options = File::options();
            // no access to the content, so that a lock of another process does not matter
            options
                .access_mode(READ_ATTRIBUTES)
                .custom_flags(ALSO_FOLDERS);
            FileStamp::of(&options.open(path)?)
        }
    }

    /// What other processes may do with the open file: read (`FILE_SHARE_READ`) and rename
    /// (`FILE_SHARE_DELETE`) it, but not write to it.
    const READERS: u32 = 1 | 4;
    /// The error of opening a file that does not allow it (`ERROR_SHARING_VIOLATION`).
    const IN_USE: i32 = 32;

    /// Opens a file for writing and locks it against other processes, which may still read it.
    /// Returns `None` if another process has locked it. The lock ends when the file is closed.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub fn open_locked(options: &mut OpenOptions, path: &Path) -> Result<Option<File>> {
        // `File::lock` would also keep readers out, even those of this process
        match options.share_mode(READERS).open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.raw_os_error() == Some(IN_USE) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The pause between two attempts to open a locked file.
    const PAUSE: Duration = Duration::from_millis(50);

    /// Like [`open_locked`], but calls `on_wait` and waits if another process has locked the file.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub fn wait_locked(
        options: &mut OpenOptions,
        path: &Path,
        on_wait: impl FnOnce(),
    ) -> Result<File> {
        let mut on_wait = Some(on_wait);
        loop {
            if let Some(file) = open_locked(options, path)? {
                return Ok(file);
            }
            on_wait.take().into_iter().for_each(|on_wait| on_wait());
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    #[test]
    fn a_file_that_cannot_be_locked_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "").unwrap();
        // such a descriptor only names the file: `flock` fails as on a file system without locks
        let flags = rustix::fs::OFlags::PATH.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags);
        assert!(open_locked(&mut options, &path).is_err());
        assert!(wait_locked(&mut options, &path, || {}).is_err());
    }

    #[test]
    fn a_file_system_need_not_sync_folders() {
        // `fsync` of a folder fails with `EINVAL` there, as on SMB shares of older kernels
        let proc = Path::new("/proc");
        let refused = File::open(proc).unwrap().sync_all().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        sync_folder(proc).unwrap();
        assert!(sync_folder(&proc.join("none")).is_err());
    }
}
