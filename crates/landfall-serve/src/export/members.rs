//! Writes members of an exported archive beside it: `<archive>.d/<member>`, with the mode bits that
//! the archive gives them.

use super::ExportError;
use super::paths::ExportFile;
use super::write::refuse_links;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How many bytes of an archive are unpacked at the most: a small one may unpack to anything.
const MOST: u64 = 64 << 30;

/// Unpacks what the lock asks for from the archive that was exported below `dir`. What is there
/// already with the same content and mode is left alone. Returns the bytes written.
pub(super) fn unpack(item: &ExportFile<'_>, dir: &Path) -> Result<u64, ExportError> {
    let Some(below) = item.paths.first().filter(|_| !item.file.members.is_empty()) else {
        return Ok(0);
    };
    let archive = dir.join(below);
    let mut folder = below.clone().into_os_string();
    folder.push(".d");
    let folder = PathBuf::from(folder);
    let wrong = |why: String| ExportError::Archive {
        url: item.file.name.into(),
        why,
    };
    let unread = |error: io::Error| wrong(error.to_string());
    let mut left: BTreeSet<&str> = item.file.members.iter().map(String::as_str).collect();
    let mut written = 0;
    let mut members = tar::Archive::new(open(&archive).map_err(unread)?);
    for member in members.entries().map_err(unread)? {
        let mut member = member.map_err(unread)?;
        let path = String::from_utf8_lossy(&member.path_bytes()).into_owned();
        let Some(name) = left.take(path.trim_start_matches("./")) else {
            continue;
        };
        if !member.header().entry_type().is_file() {
            return Err(wrong(format!("{name} is no plain file in it")));
        }
        let mode = member.header().mode().map_err(unread)? & 0o777;
        let below = folder.join(name);
        refuse_links(dir, &below)?;
        written += place(&mut member, &dir.join(below), mode)?;
        if left.is_empty() {
            break;
        }
    }
    match left.first() {
        None => Ok(written),
        Some(name) => Err(wrong(format!(
            "there is no {name} in it; `tar -t` lists what is"
        ))),
    }
}

/// The archive at `path` as a plain tar, by its first bytes.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut reader = BufReader::new(fs::File::open(path)?);
    let start = reader.fill_buf()?;
    let plain: Box<dyn Read> = match start {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(reader)?),
        _ => Box::new(reader),
    };
    Ok(Box::new(plain.take(MOST)))
}

/// Writes what `member` gives to `path`, unless it is there.
fn place(member: &mut impl Read, path: &Path, mode: u32) -> Result<u64, ExportError> {
    let failed = |source| ExportError::Write {
        path: path.into(),
        source,
    };
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(failed)?;
    let mut temporary = NamedTempFile::new_in(folder).map_err(failed)?;
    let size = io::copy(member, &mut temporary).map_err(failed)?;
    temporary
        .as_file()
        .set_permissions(fs::Permissions::from_mode(mode))
        .map_err(failed)?;
    if is_same(temporary.as_file_mut(), path, size, mode).map_err(failed)? {
        return Ok(0);
    }
    temporary.as_file().sync_all().map_err(failed)?;
    temporary
        .persist(path)
        .map_err(|error| failed(error.error))?;
    Ok(size)
}

/// Whether `path` is a plain file with this mode and the content of `file`.
fn is_same(file: &mut fs::File, path: &Path, size: u64, mode: u32) -> io::Result<bool> {
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        there => there?,
    };
    if !there.is_file() || there.len() != size || there.permissions().mode() & 0o7777 != mode {
        return Ok(false);
    }
    file.rewind()?;
    let (mut a, mut b) = (BufReader::new(file), BufReader::new(fs::File::open(path)?));
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let count = left.len().min(right.len());
        if left[..count] != right[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(left.len() == right.len());
        }
        a.consume(count);
        b.consume(count);
    }
}
