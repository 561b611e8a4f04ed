//! Writes `B.sha256sums` in the format of `sha256sum`.

use super::old_files::remove_file;
use crate::format::files::{checksums_path, partial_path, signature_path};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A line in the format of `sha256sum`, which escapes names with backslashes and line breaks.
fn line(hex: &str, name: &OsStr) -> Vec<u8> {
    let mut escaped = Vec::new();
    for &byte in name.as_bytes() {
        match byte {
            b'\\' => escaped.extend(br"\\"),
            b'\n' => escaped.extend(br"\n"),
            b'\r' => escaped.extend(br"\r"),
            _ => escaped.push(byte),
        }
    }
    // `sha256sum` marks a line with an escaped name by a backslash at its beginning
    let mark: &[u8] = if escaped == name.as_bytes() {
        b""
    } else {
        br"\"
    };
    [mark, hex.as_bytes(), b"  ", &escaped, b"\n"].concat()
}

/// The checksum lines for `files`, in order.
pub(super) fn text<'a>(files: impl Iterator<Item = &'a (PathBuf, String)>) -> Vec<u8> {
    files
        .flat_map(|(path, hex)| line(hex, path.file_name().unwrap_or_default()))
        .collect()
}

/// Replaces the checksum of `file` in `text`.
pub(super) fn replaced(text: &[u8], file: &Path, hex: &str) -> Vec<u8> {
    let own = line(hex, file.file_name().unwrap_or_default());
    // only the hex digits may differ; the line of an escaped name begins with a backslash before
    // them
    let from = usize::from(own.first() == Some(&b'\\'));
    let own_name = without_digits(&own, from);
    text.split_inclusive(|byte| *byte == b'\n')
        .flat_map(|old| {
            if without_digits(old, from) == own_name {
                own.clone()
            } else {
                old.to_vec()
            }
        })
        .collect()
}

/// A line without the 64 hex digits at `from`; `None` if it is shorter.
fn without_digits(line: &[u8], from: usize) -> Option<Vec<u8>> {
    Some([line.get(..from)?, line.get(from + 64..)?].concat())
}

/// Writes the checksums, or the signature over them, completely or not at all.
pub(super) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let partial = partial_path(path);
    let mut file = File::create(&partial)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(partial, path)
}

/// Removes the checksums, and the signature over them.
pub(super) fn remove(base: &Path) -> io::Result<()> {
    [signature_path(base), checksums_path(base)]
        .iter()
        .try_for_each(|path| remove_file(path))
}
