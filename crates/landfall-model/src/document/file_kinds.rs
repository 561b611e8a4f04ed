//! Opens the input files that users and documents name, and recognizes leftover files of Emacs and
//! macOS.

use landfall_os::without_waiting;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The paths of standard input, which is open already, and of the null device.
const OPENED: [&str; 2] = ["/dev/stdin", "/dev/null"];
/// The paths of standard output and standard error, with their descriptors.
const OUTPUTS: [(&str, u32); 2] = [("/dev/stdout", 1), ("/dev/stderr", 2)];
/// The folders that contain open files under the numbers of their descriptors.
const OPENED_FOLDERS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

/// Whether a file is a lock of Emacs (`.#m.yaml`) or metadata of macOS (`._m.yaml`), by its name.
pub fn is_leftover(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    [".#", "._"].iter().any(|start| name.starts_with(start))
}

/// Whether `path` is a named pipe, which may block forever when it is opened.
pub fn is_pipe(path: &Path) -> bool {
    !is_opened(path)
        && path
            .metadata()
            .is_ok_and(|found| landfall_os::is_pipe(found.file_type()))
}

fn is_opened(path: &Path) -> bool {
    OPENED.iter().any(|opened| path == Path::new(opened)) || numbered_descriptor(path).is_some()
}

/// Returns the number of the descriptor that the path of an output names, such as 1 for
/// `/dev/stdout` and `/dev/fd/1`.
pub fn output_descriptor(path: &Path) -> Option<u32> {
    let mut outputs = OUTPUTS.into_iter();
    let named = outputs.find(|(name, _)| path == Path::new(name));
    named
        .map(|(_, number)| number)
        .or_else(|| numbered_descriptor(path))
}

fn numbered_descriptor(path: &Path) -> Option<u32> {
    // a longer path may lead anywhere, as `/dev/fd/../../../dev/zero` does
    OPENED_FOLDERS
        .iter()
        .find_map(|folder| path.strip_prefix(folder).ok()?.to_str()?.parse().ok())
}

/// Opens an input file for reading. Named pipes, sockets and devices are refused, because opening
/// or reading them may block forever. `/dev/null` and paths of open files, such as `/dev/stdin`,
/// are accepted.
///
/// # Errors
/// If the file cannot be opened, or is of a refused kind.
pub fn open_input(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    if is_opened(path) {
        return File::open(path);
    }
    // without this flag, opening a pipe waits for a writer; it does not affect regular files
    let file = without_waiting(File::options().read(true)).open(path)?;
    let kind = file.metadata()?.file_type();
    match kind {
        kind if kind.is_file() || kind.is_dir() => Ok(file),
        kind if landfall_os::is_pipe(kind) => {
            Err(io::Error::other("it is a named pipe, not a regular file"))
        }
        _ => Err(io::Error::other("it is a device, not a regular file")),
    }
}

/// Reads an input file.
///
/// # Errors
/// Like [`open_input`], and if reading fails.
pub fn read_input(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_input(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads an input file as text: in UTF-8, or in UTF-16 as `>` of PowerShell writes it.
///
/// # Errors
/// Like [`read_input`], and if the content is no such text.
pub fn read_text_input(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = read_input(path)?;
    let text = decode_text(bytes).map(|(text, _)| text);
    text.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not text in valid UTF-8; save it in this encoding",
        )
    })
}

/// The encoding of a text in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8. A byte order mark is a part of the text.
    Utf8,
    /// UTF-16 after the byte order mark of little-endian, as PowerShell writes it.
    Utf16Le,
    /// UTF-16 after the byte order mark of big-endian.
    Utf16Be,
}

impl TextEncoding {
    /// The bytes of `text`, with the byte order mark of UTF-16.
    pub fn encode(self, text: &str) -> Vec<u8> {
        let units = |bytes: fn(u16) -> [u8; 2]| {
            let mark = std::iter::once(0xfeff);
            mark.chain(text.encode_utf16()).flat_map(bytes).collect()
        };
        match self {
            TextEncoding::Utf8 => text.as_bytes().to_vec(),
            TextEncoding::Utf16Le => units(u16::to_le_bytes),
            TextEncoding::Utf16Be => units(u16::to_be_bytes),
        }
    }
}

/// Decodes a text in UTF-8, or in UTF-16 with a byte order mark. `None` if `bytes` are no such
/// text.
pub fn decode_text(bytes: Vec<u8>) -> Option<(String, TextEncoding)> {
    let (text, encoding) = match utf16_units(&bytes) {
        // half a character at the end would be lost
        Some(_) if !bytes.len().is_multiple_of(2) => return None,
        Some(units) if bytes.starts_with(&[0xff]) => {
            (String::from_utf16(&units).ok(), TextEncoding::Utf16Le)
        }
        Some(units) => (String::from_utf16(&units).ok(), TextEncoding::Utf16Be),
        None => (String::from_utf8(bytes).ok(), TextEncoding::Utf8),
    };
    Some((text?, encoding))
}

/// The units of a text in UTF-16 that begins with a byte order mark, without that mark. Half a unit
/// at the end is ignored.
pub fn utf16_units(bytes: &[u8]) -> Option<Vec<u16>> {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let pairs = bytes.chunks_exact(2);
        pairs.map(|pair| unit([pair[0], pair[1]])).collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => Some(units(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Some(units(rest, u16::from_be_bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::path::PathBuf;

    #[test]
    fn endless_files_are_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let link = dir.path().join("link");
        let file = dir.path().join("file");
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
        // opened only, because a defect would read them forever
        for device in [
            "/dev/zero",
            "/dev/fd/../../../dev/zero",
            "/proc/self/fd/../../../dev/zero",
        ] {
            let error = open_input(device).unwrap_err().to_string();
            assert!(error.contains("a device"), "{device}: {error}");
        }
        let (end, _other) = io::pipe().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&end);
        for folder in OPENED_FOLDERS {
            let path = PathBuf::from(format!("{folder}/{number}"));
            assert!(!is_pipe(&path), "{}", path.display());
        }
        assert_eq!(read_text_input(&file).unwrap(), "text");
        for bytes in [&b"\xff\xfea\0\xe9\0"[..], b"\xfe\xff\0a\0\xe9"] {
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(read_text_input(&file).unwrap(), "a\u{e9}");
        }
        for bytes in [&b"\xff\xfe\0\xd8"[..], b"\xff\xfea\0b", b"a\xe9"] {
            std::fs::write(&file, bytes).unwrap();
            let error = read_text_input(&file).unwrap_err();
            assert!(error.to_string().contains("valid UTF-8"), "{error}");
        }
        assert_eq!(read_input(Path::new("/dev/null")).unwrap(), b"");
        assert!(open_input(dir.path().join("none")).is_err());
    }

    #[test]
    fn the_descriptor_of_an_output_is_found_by_its_path() {
        for (path, number) in [
            ("/dev/stdout", Some(1)),
            ("/dev/fd/1", Some(1)),
            ("/proc/self/fd/1", Some(1)),
            ("/dev/stderr", Some(2)),
            ("/dev/fd/12", Some(12)),
            ("/dev/null", None),
            ("/dev/fd", None),
            ("/dev/fd/1/x", None),
            ("/dev/fd/../../tmp/1", None),
            ("1", None),
        ] {
            assert_eq!(output_descriptor(Path::new(path)), number, "{path}");
        }
    }
}
