//! Writes one exported file: verified, completely or not at all, and never outside of the folder.

use super::ExportError;
use super::export_paths::ExportFile;
use landfall_content::{
    BlobRead, ContentError, CopyError, copy_checked, digest_of, refuse_special,
};
use landfall_model::report::ItemStatus;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes a file to all its paths: the content once, and hard links to it. Files that exist with
/// the same content and mode are left unchanged. Returns the status and the bytes written.
pub(super) fn write_file(
    item: &ExportFile,
    blobs: &dyn BlobRead,
    dir: &Path,
) -> Result<(ItemStatus, u64), ExportError> {
    let mut status = ItemStatus::Present;
    let mut written = 0;
    // the first path; the others become hard links to it
    let mut first: Option<PathBuf> = None;
    for below in &item.paths {
        refuse_links(dir, below)?;
        let path = dir.join(below);
        if is_up_to_date(&path, item).map_err(|source| write_error(&path, source))? {
            first.get_or_insert(path);
            continue;
        }
        // a symbolic link is replaced, and nothing is written through it
        if !path.is_symlink() {
            refuse_special(&path).map_err(|source| write_error(&path, source))?;
        }
        status = ItemStatus::Done;
        fs::create_dir_all(path.parent().unwrap_or(dir))
            .map_err(|source| write_error(&path, source))?;
        let is_linked = match &first {
            Some(first) => link(first, &path).is_ok(),
            None => false,
        };
        // some file systems have no hard links
        if !is_linked {
            write_content(item, blobs, &path)?;
            written += item.file.size;
        }
        first.get_or_insert(path);
    }
    Ok((status, written))
}

/// Checks what [`write_file`] would do: `Present` if all paths are up to date, else `Skipped`.
/// Fails if the content is needed but missing. It is not needed if an earlier path is up to date,
/// because the later paths become links to that path.
pub(super) fn check_file(
    item: &ExportFile,
    blobs: &dyn BlobRead,
    dir: &Path,
) -> Result<ItemStatus, ExportError> {
    let mut is_linkable = false;
    for below in &item.paths {
        refuse_links(dir, below)?;
        let path = dir.join(below);
        if is_up_to_date(&path, item).map_err(|source| write_error(&path, source))? {
            is_linkable = true;
            continue;
        }
        let digest = item.file.digest;
        if !is_linkable && blobs.stat(digest)?.is_none() {
            return Err(ContentError::missing(digest).into());
        }
        return Ok(ItemStatus::Skipped);
    }
    Ok(ItemStatus::Present)
}

fn write_error(path: &Path, source: io::Error) -> ExportError {
    ExportError::Write {
        path: path.into(),
        source,
    }
}

/// Writes the content through a temporary file in the same folder.
fn write_content(item: &ExportFile, blobs: &dyn BlobRead, path: &Path) -> Result<(), ExportError> {
    let failed = |source| write_error(path, source);
    let folder = path.parent().unwrap_or(path);
    let temporary = NamedTempFile::new_in(folder).map_err(failed)?;
    let copied = copy_checked(blobs, item.file.digest, item.file.size, |piece| {
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
        .persist(path)
        .map_err(|error| failed(error.error))?;
    Ok(())
}

/// Makes `path` a hard link to `first`, replacing an existing file.
fn link(first: &Path, path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    // linked under a temporary name first, because `hard_link` does not replace a file
    let temporary = tempfile::Builder::new().make_in(folder, |name| fs::hard_link(first, name))?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Whether `path` is a regular file with this content and mode.
fn is_up_to_date(path: &Path, item: &ExportFile) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        metadata => metadata?,
    };
    if !metadata.is_file()
        || metadata.size() != item.file.size
        || metadata.mode() & 0o7777 != item.mode
    {
        return Ok(false);
    }
    let mut file = fs::File::open(path)?;
    Ok(digest_of(&mut file, item.file.digest.algorithm())? == *item.file.digest)
}

/// Refuses a symbolic link in place of a folder between `dir` and the file: it could lead out of
/// `dir`. A link at the file's own path is replaced instead.
pub(super) fn refuse_links(dir: &Path, below: &Path) -> Result<(), ExportError> {
    let mut folder = dir.to_path_buf();
    for component in below.parent().into_iter().flat_map(Path::components) {
        folder.push(component);
        if fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(ExportError::Link {
                path: dir.join(below),
                link: folder,
            });
        }
    }
    Ok(())
}
