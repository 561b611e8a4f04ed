//! Removing the files of an older or an unfinished bundle.

use crate::bundle::format::files::volume_path;
use crate::bundle::read::bundle::Bundle;
use crate::bundle::read::volume_set::numbers;
use std::fs;
use std::io;
use std::path::Path;

/// Removes a file if it is there.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the older bundle that has the name `out` in the other form: volumes where a file comes, a file where volumes
/// come. It would be read in place of the new one, or beside it. Files that are no bundle stay. Says whether there was one.
pub(crate) fn remove_other_form(out: &Path, is_split: bool) -> io::Result<bool> {
    let other = if is_split { out.to_path_buf() } else { volume_path(out, 1) };
    if !other.is_file() || Bundle::open(&other).is_err() {
        return Ok(false);
    }
    if is_split { remove_file(out) } else { remove_volumes(out) }?;
    Ok(true)
}

/// Removes all volumes of `base`, the first one first: without it the others are no bundle.
pub(crate) fn remove_volumes(base: &Path) -> io::Result<()> {
    numbers(base)?.into_iter().try_for_each(|number| remove_file(&volume_path(base, number)))
}
