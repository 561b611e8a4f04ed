//! Files that people and documents name: which are none of a folder's documents, and how they are
//! opened.

use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Paths that the shell or the caller opened already, and the empty device.
const OPENED: [&str; 4] = ["/dev/fd", "/dev/stdin", "/proc/self/fd", "/dev/null"];

/// Whether a file is Emacs's lock on another (`.#m.yaml`) or what macOS keeps beside it
/// (`._m.yaml`), by its name.
pub fn is_leftover(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    [".#", "._"].iter().any(|start| name.starts_with(start))
}

/// Whether it takes for ever to open what is at `path`, because nobody may ever write to it.
pub fn is_pipe(path: &Path) -> bool {
    !is_opened(path)
        && path
            .metadata()
            .is_ok_and(|found| found.file_type().is_fifo())
}

fn is_opened(path: &Path) -> bool {
    OPENED.iter().any(|opened| path.starts_with(opened))
}

/// Opens the file at `path`, which somebody named, for reading. Named pipes, sockets and devices
/// are refused: to open or read them may take forever.
///
/// # Errors
/// When the system refuses, or it is such a file.
pub fn open_input(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    if is_opened(path) {
        return File::open(path);
    }
    // a pipe that nobody writes to is opened at once by this flag; to other files it means nothing
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    let kind = file.metadata()?.file_type();
    match kind {
        kind if kind.is_file() || kind.is_dir() => Ok(file),
        kind if kind.is_fifo() => Err(io::Error::other("it is a named pipe, not a regular file")),
        _ => Err(io::Error::other("it is a device, not a regular file")),
    }
}

/// The content of the file at `path`, which somebody named.
///
/// # Errors
/// As [`open_input`].
pub fn read_input(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_input(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text in the file at `path`, which somebody named.
///
/// # Errors
/// As [`open_input`], and when it is not UTF-8.
pub fn read_text_input(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::new();
    open_input(path)?.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn what_may_be_read_forever_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, link, file) = (
            dir.path().join("pipe"),
            dir.path().join("link"),
            dir.path().join("file"),
        );
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        std::fs::write(&file, "text").unwrap();
        for path in [&pipe, &link] {
            assert!(
                read_input(path)
                    .unwrap_err()
                    .to_string()
                    .contains("a named pipe"),
                "{}",
                path.display()
            );
            assert!(is_pipe(path));
        }
        assert!(
            read_text_input(Path::new("/dev/zero"))
                .unwrap_err()
                .to_string()
                .contains("a device")
        );
        assert_eq!(read_text_input(&file).unwrap(), "text");
        assert_eq!(read_input(Path::new("/dev/null")).unwrap(), b"");
        assert!(open_input(dir.path().join("none")).is_err());
    }
}
