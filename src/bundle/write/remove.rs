//! Removing the files of an older or an unfinished bundle.

use crate::bundle::format::files::volume_path;
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

/// Removes all volumes of `base`, the first one first: without it the others are no bundle.
pub(crate) fn remove_volumes(base: &Path) -> io::Result<()> {
    numbers(base)?.into_iter().try_for_each(|number| remove_file(&volume_path(base, number)))
}
