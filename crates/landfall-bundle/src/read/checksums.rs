//! Reads `B.sha256sums`, the checksum file of bundle `B`. It has the format of `sha256sum`, so that
//! a disc can be checked without landfall.

use crate::format::files::{checksums_path, number_of};
use landfall_content::parent_folder;
use landfall_model::document::{open_input, read_input};
use landfall_model::{Algorithm, Hasher, Limits};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files of the bundle `base` that its checksum file lists, each with its checksum in hex
/// digits. Empty if the checksum file does not exist or cannot be read.
pub(crate) fn read(base: &Path) -> Vec<(PathBuf, String)> {
    let mut text = Vec::new();
    let limit = Limits::default().document_bytes as u64;
    let read =
        open_input(checksums_path(base)).and_then(|file| file.take(limit).read_to_end(&mut text));
    let mut found = Vec::new();
    if read.is_ok() {
        let own = base.file_name().unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n') {
            let Some((hex, path)) = line
                .split_first_chunk::<64>()
                .filter(|(hex, _)| hex.iter().all(u8::is_ascii_hexdigit))
            else {
                continue;
            };
            // text or binary mode, which do not differ on Unix
            let Some(path) = path
                .strip_prefix(b"  ")
                .or_else(|| path.strip_prefix(b" *"))
            else {
                continue;
            };
            let path = parent_folder(base).join(OsStr::from_bytes(path));
            // the file comes with the bundle, so its paths must not lead to other folders
            let is_own = path.parent() == Some(parent_folder(base))
                && (path.file_name() == Some(own) || number_of(base, &path).is_some());
            if is_own {
                found.push((path, String::from_utf8_lossy(hex).to_ascii_lowercase()));
            }
        }
    }
    found
}

/// Whether the file at `path` matches its checksum next to `base`, and so was written with the
/// bundle and not changed since.
pub(crate) fn has(base: &Path, path: &Path) -> bool {
    // a file that cannot be read is not known to be unchanged
    let Ok(hex) = hash_file(path) else {
        return false;
    };
    let name = path.file_name().unwrap_or_default();
    let line = [hex.as_bytes(), b"  ", name.as_bytes()].concat();
    let text = read_input(checksums_path(base)).unwrap_or_default();
    text.split(|byte| *byte == b'\n').any(|one| one == line)
}

/// The checksums of the volumes of `base` in hex digits, by number.
pub(crate) fn of_volumes(base: &Path) -> BTreeMap<usize, String> {
    read(base)
        .into_iter()
        .filter_map(|(path, sum)| Some((number_of(base, &path)?, sum)))
        .collect()
}

/// The SHA-256 of a file in hex digits.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = open_input(path)?;
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish().hex()),
            count => hasher.update(&buffer[..count]),
        }
    }
}
