//! Writing `B.sha256sums`, which `sha256sum -c` checks.

use super::remove::remove_file;
use crate::bundle::format::files::{checksums_path, partial_path, signature_path};
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
    let mark: &[u8] = if escaped == name.as_bytes() { b"" } else { br"\" };
    [mark, hex.as_bytes(), b"  ", &escaped, b"\n"].concat()
}

/// The checksums of `files`.
pub(crate) fn text<'a>(files: impl Iterator<Item = &'a (PathBuf, String)>) -> Vec<u8> {
    files.flat_map(|(path, hex)| line(hex, path.file_name().unwrap_or_default())).collect()
}

/// Writes the checksums, or the signature over them.
pub(crate) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let partial = partial_path(path);
    let mut file = File::create(&partial)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(partial, path)
}

/// Removes the checksums, and the signature over them.
pub(crate) fn remove(base: &Path) -> io::Result<()> {
    [signature_path(base), checksums_path(base)].iter().try_for_each(|path| remove_file(path))
}
