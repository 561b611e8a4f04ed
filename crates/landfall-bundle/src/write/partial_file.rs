//! `OUT.partial`, the file that a bundle is written to before it is renamed: its lock against other
//! processes, the disk space that it needs, and its work folder.

use crate::error::BundleError;
use crate::format::files::{checksums_path, partial_path, signature_path, suffixed, volume_path};
use crate::read::volume_set::numbers;
use landfall_content::{self as content, DiskSpace, parent_folder, refuse_special};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Opens or creates `OUT.partial`, and locks it against other processes. Fails if one of the names
/// that the bundle needs belongs to something other than a regular file.
pub(crate) fn claim(out: &Path) -> Result<(PathBuf, File), BundleError> {
    let path = partial_path(out);
    let failed = BundleError::write(&path);
    let beside = [
        out.to_path_buf(),
        path.clone(),
        checksums_path(out),
        signature_path(out),
    ];
    let volumes = numbers(out)
        .map_err(failed)?
        .into_iter()
        .map(|number| volume_path(out, number));
    // checked before anything is written: a rename would replace a device or a link with a file
    for path in beside.into_iter().chain(volumes) {
        refuse_special(&path).map_err(|source| BundleError::Write { path, source })?;
    }
    let file = content::lock_partial_file(&path).map_err(failed)?;
    let file = file.ok_or_else(|| BundleError::Busy { path: path.clone() })?;
    Ok((path, file))
}

/// Fails if the disk has less than `needed` bytes free.
pub(crate) fn room(needed: u64, out: &Path) -> Result<(), BundleError> {
    let folder = parent_folder(out);
    let room = DiskSpace::measure(folder, needed).map_err(BundleError::write(folder))?;
    // `needed` is the largest possible size, because compression cannot be predicted
    if room.is_enough() {
        return Ok(());
    }
    Err(BundleError::Space {
        folder: room.folder,
        needed,
        available: room.free,
    })
}

/// The work folder next to the partial file at `path`, in which `pull --bundle` keeps its journal
/// and spool.
pub(crate) fn work_folder(path: &Path) -> PathBuf {
    suffixed(path, ".work")
}

/// Removes the work folder of the partial file at `path`, if it exists.
pub(crate) fn clear_work(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(work_folder(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
