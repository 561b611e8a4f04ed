//! Writing `B.sha256sums`, which `sha256sum -c` checks.

use super::remove::remove_file;
use crate::format::files::{checksums_path, partial_path, signature_path};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One line as `sha256sum` writes it.
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
    let mark: &[u8] = if escaped == name.as_bytes() {
        b""
    } else {
        br"\"
    };
    [mark, hex.as_bytes(), b"  ", &escaped, b"\n"].concat()
}

/// The checksums of `files`.
pub(super) fn text<'a>(files: impl Iterator<Item = &'a (PathBuf, String)>) -> Vec<u8> {
    files
        .flat_map(|(path, hex)| line(hex, path.file_name().unwrap_or_default()))
        .collect()
}

/// The checksums `text` with this sum of `file` in place of the one that they have.
pub(super) fn replaced(text: &[u8], file: &Path, hex: &str) -> Vec<u8> {
    let own = line(hex, file.file_name().unwrap_or_default());
    // the hex digits are all that may differ; a name that is escaped has a mark before them
    let from = usize::from(own.first() == Some(&b'\\'));
    let same = |old: &[u8]| {
        let others = |line: &[u8]| Some([line.get(..from)?, line.get(from + 64..)?].concat());
        others(old) == others(&own)
    };
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines
        .flat_map(|old| if same(old) { own.clone() } else { old.to_vec() })
        .collect()
}

/// Writes the checksums, or the signature over them.
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
