//! Writes one exported file: checked, whole or not at all, and never out of the folder.

use super::ExportError;
use super::paths::ExportFile;
use landfall_content::{
    BlobRead, ContentError, CopyError, copy_checked, digest_of, refuse_special,
};
use landfall_model::report::ItemStatus;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes one file to all its paths: the content once, and hard links to it. Returns the bytes
/// written.
pub(super) fn write(
    item: &ExportFile,
    blobs: &dyn BlobRead,
    dir: &Path,
    dry: bool,
) -> Result<(ItemStatus, u64), ExportError> {
    let (mut status, mut written) = (ItemStatus::Present, 0);
    let mut first: Option<PathBuf> = None;
    for below in &item.paths {
        let path = dir.join(below);
        let failed = |source| ExportError::Write {
            path: path.clone(),
            source,
        };
        let folder = path.parent().unwrap_or(dir);
        refuse_links(dir, below)?;
        if is_there(&path, item).map_err(failed)? {
            first.get_or_insert(path);
            continue;
        }
        if dry {
            let there = blobs.stat(item.file.digest)?;
            there.ok_or_else(|| ContentError::Missing {
                digest: item.file.digest.clone(),
            })?;
            return Ok((ItemStatus::Skipped, 0));
        }
        // a link is replaced, and nothing is written through it
        if !path.is_symlink() {
            refuse_special(&path).map_err(failed)?;
        }
        status = ItemStatus::Done;
        fs::create_dir_all(folder).map_err(failed)?;
        let linked = first
            .as_deref()
            .is_some_and(|first| link(first, &path).is_ok());
        if !linked {
            let temporary = NamedTempFile::new_in(folder).map_err(failed)?;
            let digest = item.file.digest;
            let copied = copy_checked(blobs, digest, item.file.size, |piece| {
                temporary.as_file().write_all(piece)
            });
            copied.map_err(|error| match error {
                CopyError::Content(error) => error.into(),
                CopyError::Write(source) => failed(source),
            })?;
            temporary
                .as_file()
                .set_permissions(fs::Permissions::from_mode(item.mode))
                .map_err(failed)?;
            temporary.as_file().sync_all().map_err(failed)?;
            temporary
                .persist(&path)
                .map_err(|error| failed(error.error))?;
            written += item.file.size;
        }
        first.get_or_insert(path);
    }
    Ok((status, written))
}

/// Makes `path` a second name for `first`, in place of whatever is there.
fn link(first: &Path, path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let temporary = tempfile::Builder::new().make_in(folder, |name| fs::hard_link(first, name))?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Whether `path` is a plain file with this content and mode.
fn is_there(path: &Path, item: &ExportFile) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => return Ok(false),
        found => found?,
    };
    if !found.is_file() || found.size() != item.file.size || found.mode() & 0o7777 != item.mode {
        return Ok(false);
    }
    let mut file = fs::File::open(path)?;
    Ok(digest_of(&mut file, item.file.digest.algorithm())? == *item.file.digest)
}

/// No folder between `dir` and the file may be a symbolic link: it could lead out of `dir`. A link
/// at the file's own path is replaced.
pub(super) fn refuse_links(dir: &Path, below: &Path) -> Result<(), ExportError> {
    let mut at = dir.to_path_buf();
    for part in below.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        if fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink()) {
            return Err(ExportError::Link {
                path: dir.join(below),
                link: at,
            });
        }
    }
    Ok(())
}
