//! Extracts the requested members of an exported archive to `<archive>.d/<member>`, with the
//! permission bits that the archive gives them.

use super::export_files::{open_if_like, refuse_links};
use super::{ExportFile, failed};
use landfall_content::{parent_folder, private_file_in, publish_file};
use landfall_model::Failure;
use landfall_model::document::GzipReader;
use landfall_patch::extended_path;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// The maximum number of bytes that are unpacked from one archive: a small archive may unpack to
/// any size.
const MAX_UNPACKED: u64 = 64 << 30;

/// Extracts the members that the lock requests from the archive that was exported below `dir`.
/// Members that exist with the same content and mode are left unchanged. Returns the number of
/// bytes written, or `None` if all members are unchanged.
pub(super) fn unpack_members(item: &ExportFile<'_>, dir: &Path) -> Result<Option<u64>, Failure> {
    let mut written: Option<u64> = None;
    visit_members(item, dir, |member| {
        if let Some(bytes) = member.write()? {
            written = Some(written.unwrap_or(0) + bytes);
        }
        Ok(())
    })?;
    Ok(written)
}

/// Whether all members that the lock requests exist with the content and mode that the archive
/// below `dir` gives them.
pub(super) fn are_members_unpacked(item: &ExportFile<'_>, dir: &Path) -> Result<bool, Failure> {
    let mut are_unpacked = true;
    visit_members(item, dir, |member| {
        are_unpacked &= member.exists()?;
        Ok(())
    })?;
    Ok(are_unpacked)
}

/// The paths below the folder of an export to which the members of the file are extracted.
pub(super) fn member_paths(item: &ExportFile<'_>) -> Vec<PathBuf> {
    let Some(below) = item.paths.first() else {
        return Vec::new();
    };
    let folder = members_folder(below);
    let members = item.file.members.iter();
    members.map(|name| folder.join(name)).collect()
}

/// The folder for the members of the archive at `below`.
fn members_folder(below: &Path) -> PathBuf {
    let mut folder = below.to_owned().into_os_string();
    folder.push(".d");
    PathBuf::from(folder)
}

/// A member of an archive, and where it is extracted to.
struct UnpackedMember<R> {
    content: R,
    size: u64,
    path: PathBuf,
    mode: u32,
}

/// Calls `visit` with each member that the lock requests from the archive below `dir`. Fails if the
/// archive lacks one of them.
fn visit_members(
    item: &ExportFile<'_>,
    dir: &Path,
    mut visit: impl FnMut(UnpackedMember<&mut dyn Read>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(below) = item.paths.first() else {
        return Ok(());
    };
    if item.file.members.is_empty() {
        return Ok(());
    }
    let unreadable = |error: io::Error| archive_error(item, error.to_string());
    let folder = members_folder(below);
    let mut missing: BTreeSet<&str> = item.file.members.iter().map(String::as_str).collect();
    let mut archive = tar::Archive::new(open_archive(&dir.join(below)).map_err(unreadable)?);
    // the path in the extended headers before a member
    let mut extended = None;
    // raw, because the crate would read extended headers into memory without a limit
    for member in archive.entries().map_err(unreadable)?.raw(true) {
        let mut member = member.map_err(unreadable)?;
        let kind = member.header().entry_type();
        if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
            let path = extended_path(&mut member, kind).map_err(unreadable)?;
            extended = path.or(extended);
            continue;
        }
        if kind.is_gnu_longlink() {
            continue;
        }
        let path = extended
            .take()
            .unwrap_or_else(|| member.header().path_bytes().into_owned());
        let path = String::from_utf8_lossy(&path);
        // `name` is from the lock, where names are checked: names in the archive are not trusted
        let Some(name) = missing.take(path.trim_start_matches("./")) else {
            continue;
        };
        if !member.header().entry_type().is_file() {
            return Err(archive_error(item, format!("{name} is not a regular file")));
        }
        let mode = member.header().mode().map_err(unreadable)? & 0o777;
        let target = folder.join(name);
        refuse_links(dir, &target)?;
        visit(UnpackedMember {
            size: member.size(),
            content: &mut member,
            path: dir.join(target),
            mode,
        })?;
        // the rest of a compressed archive need not be unpacked
        if missing.is_empty() {
            break;
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(name) => Err(archive_error(
            item,
            format!("it contains no {name}; `tar -t` lists its members"),
        )),
    }
}

fn archive_error(item: &ExportFile<'_>, why: String) -> Failure {
    failed(format!("cannot unpack {}: {why}", item.file.name))
}

/// Opens a tar archive that may be compressed with gzip or zstd, as its first bytes show.
fn open_archive(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut reader = BufReader::new(fs::File::open(path)?);
    let plain: Box<dyn Read> = match reader.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(GzipReader::new(reader)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(reader)?),
        _ => Box::new(reader),
    };
    Ok(Box::new(plain.take(MAX_UNPACKED)))
}

impl<R: Read> UnpackedMember<R> {
    /// Extracts the member. Returns the number of bytes written, or `None` if it is already there.
    fn write(mut self) -> Result<Option<u64>, Failure> {
        let written = self.try_write();
        written.map_err(|error| Failure::write(&self.path, error))
    }

    /// Whether the member is already there.
    fn exists(self) -> Result<bool, Failure> {
        let exists = is_up_to_date(self.content, self.size, &self.path, self.mode);
        exists.map_err(|error| Failure::write(&self.path, error))
    }

    fn try_write(&mut self) -> io::Result<Option<u64>> {
        let path = &self.path;
        let folder = parent_folder(path);
        fs::create_dir_all(folder)?;
        let mut temporary = private_file_in(folder)?;
        let size = io::copy(&mut self.content, &mut temporary.as_file())?;
        // the archive has no digests of its members, so the content itself is compared
        temporary.as_file_mut().rewind()?;
        if is_up_to_date(temporary.as_file_mut(), size, path, self.mode)? {
            return Ok(None);
        }
        publish_file(temporary, path, Some(self.mode))?;
        Ok(Some(size))
    }
}

/// Whether `path` is a regular file with this mode and `content`, which has `size` bytes.
fn is_up_to_date(content: impl Read, size: u64, path: &Path, mode: u32) -> io::Result<bool> {
    match open_if_like(path, size, mode)? {
        Some(file) => have_same_content(BufReader::new(content), BufReader::new(file)),
        None => Ok(false),
    }
}

fn have_same_content(mut a: impl BufRead, mut b: impl BufRead) -> io::Result<bool> {
    loop {
        let left = a.fill_buf()?;
        let right = b.fill_buf()?;
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
