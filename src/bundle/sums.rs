//! `B.sha256sums`: what `sha256sum -c` checks, so that a disc can be checked without landfall.

use super::Error;
use super::out::hash;
use super::volumes::{self, folder, name};
use crate::model::Limits;
use crate::report::Progress;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where the checksums of the files of the bundle `base` stand: those of its volumes, or its own, and those
/// of what was put beside it.
pub fn sums_path(base: &Path) -> PathBuf {
    with(base, ".sha256sums")
}

/// Where the signature over these checksums stands.
pub(super) fn signature_path(base: &Path) -> PathBuf {
    with(&sums_path(base), ".sig")
}

/// `path` with `end` after its name.
pub(super) fn with(path: &Path, end: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(end);
    path.into()
}

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
pub(super) fn text<'a>(files: impl Iterator<Item = &'a (PathBuf, String)>) -> Vec<u8> {
    files.flat_map(|(path, hex)| line(hex, path.file_name().unwrap_or_default())).collect()
}

/// Writes the checksums, or the signature over them.
pub(super) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let partial = with(path, ".partial");
    let mut file = File::create(&partial)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(partial, path)
}

/// Takes the checksums away, and the signature over them.
pub(super) fn remove(base: &Path) -> io::Result<()> {
    [signature_path(base), sums_path(base)].iter().try_for_each(|path| volumes::remove(path))
}

/// The checksums that stand beside `base`, as far as they are of its own files: hex by path. None where
/// there is no such file or it is not to be made out.
pub(super) fn read(base: &Path) -> Vec<(PathBuf, String)> {
    let mut text = Vec::new();
    let limit = Limits::default().document_bytes as u64;
    let read = File::open(sums_path(base)).and_then(|file| file.take(limit).read_to_end(&mut text));
    let mut found = Vec::new();
    if read.is_ok() {
        let own = base.file_name().unwrap_or_default();
        for of in text.split(|byte| *byte == b'\n') {
            let is_sum = |hex: &&[u8]| hex.len() == 64 && hex.iter().all(u8::is_ascii_hexdigit);
            let Some((hex, path)) = of.split_first_chunk::<64>().filter(|(hex, _)| is_sum(&&hex[..])) else {
                continue;
            };
            // text or binary mode, which is the same here
            let Some(path) = path.strip_prefix(b"  ").or_else(|| path.strip_prefix(b" *")) else { continue };
            let path = folder(base).join(OsStr::from_bytes(path));
            let is_own = path.parent() == Some(folder(base))
                && (path.file_name() == Some(own) || volumes::number_of(base, &path).is_some());
            if is_own {
                found.push((path, String::from_utf8_lossy(hex).to_ascii_lowercase()));
            }
        }
    }
    found
}

/// Compares the volumes that `path` means with the checksums beside them, after `error` has come of opening
/// or reading: names all that are missing, cut short, damaged or of another bundle. Gives `error` back where
/// that says no more, or there are no checksums.
pub fn explain(error: Error, path: &Path, progress: &dyn Progress) -> Error {
    let (Error::Unsound { .. } | Error::Missing { .. }) = error else { return error };
    let Ok(Some(volumes)) = volumes::Volumes::of(path) else { return error };
    let sums = read(&volumes.base);
    let missing = volumes.missing();
    progress.begin("verify", sums.len() as u64, 0);
    let mut bad = Vec::new();
    for (path, sum) in sums.iter().filter(|(path, _)| volumes::number_of(&volumes.base, path).is_some()) {
        let volume = name(path);
        if missing.contains(&volume) {
            continue;
        }
        match hash(path) {
            Ok(found) if found == *sum => {}
            Ok(_) => bad.push(format!(
                "{volume}: it does not have the SHA-256 that {} gives it",
                name(&sums_path(&volumes.base))
            )),
            Err(source) => bad.push(format!("{volume}: cannot be read: {source}")),
        }
        progress.item(&volume);
    }
    progress.end();
    if bad.is_empty() {
        return error;
    }
    bad.extend(missing.iter().map(|volume| format!("{volume}: it is missing")));
    bad.sort();
    Error::Volumes { path: volumes.base, bad }
}
