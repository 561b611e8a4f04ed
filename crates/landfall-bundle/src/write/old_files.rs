//! Removes files of older and unfinished bundles.

use crate::format::files::volume_path;
use crate::read::bundle::Bundle;
use crate::read::checksums;
use crate::read::volume_set::{begins_bundle, begins_volume, numbers};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Removes a file, if it exists.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The old volumes of `out` to remove when `count` new ones are written: those with the names of
/// new volumes, those in the checksum file, and those whose content begins like a volume. Other
/// files with names like `out.0007` are not included.
pub(super) fn older_volumes(out: &Path, count: usize) -> io::Result<Vec<PathBuf>> {
    let listed = checksums::of_volumes(out);
    let numbers = numbers(out)?.into_iter();
    let older = numbers.filter(|number| {
        *number <= count || listed.contains_key(number) || begins_volume(&volume_path(out, *number))
    });
    Ok(older.map(|number| volume_path(out, number)).collect())
}

/// Removes an older bundle with the name `out` in the other form (volumes instead of a file, or the
/// reverse), which would be read instead of the new one. Files that are not a bundle are kept.
/// Returns whether such a bundle existed.
pub(super) fn remove_other_form(out: &Path, is_split: bool) -> io::Result<bool> {
    let other = if is_split {
        out.to_path_buf()
    } else {
        volume_path(out, 1)
    };
    // a file of the user with this name is not removed, but a damaged bundle is
    if !other.is_file() || (Bundle::open(&other).is_err() && !begins_bundle(&other)) {
        return Ok(false);
    }
    if is_split {
        remove_file(out)?;
    } else {
        for path in older_volumes(out, 0)? {
            remove_file(&path)?;
        }
    }
    Ok(true)
}

/// Removes all volumes of the unfinished bundle `base`, in order.
pub(super) fn remove_volumes(base: &Path) -> io::Result<()> {
    numbers(base)?
        .into_iter()
        .try_for_each(|number| remove_file(&volume_path(base, number)))
}
