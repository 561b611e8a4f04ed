//! Removing the files of an older or an unfinished bundle.

use crate::format::files::volume_path;
use crate::read::bundle::Bundle;
use crate::read::checksums;
use crate::read::volume_set::{begins_volume, numbers};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Removes a file if it is there.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The volumes of `out` that may go when `count` new ones come: those in their way, those that the
/// checksums beside them list, and others that begin as volumes do. Files of somebody that end in
/// such a number by chance are not among them.
pub(super) fn older_volumes(out: &Path, count: usize) -> io::Result<Vec<PathBuf>> {
    let listed = checksums::of_volumes(out);
    let numbers = numbers(out)?.into_iter();
    let older = numbers.filter(|number| {
        *number <= count || listed.contains_key(number) || begins_volume(&volume_path(out, *number))
    });
    Ok(older.map(|number| volume_path(out, number)).collect())
}

/// Removes the older bundle that has the name `out` in the other form: volumes where a file comes,
/// a file where volumes come. It would be read in place of the new one, or beside it. Files that
/// are no bundle stay. Says whether there was one.
pub(super) fn remove_other_form(out: &Path, is_split: bool) -> io::Result<bool> {
    let other = if is_split {
        out.to_path_buf()
    } else {
        volume_path(out, 1)
    };
    if !other.is_file() || Bundle::open(&other).is_err() {
        return Ok(false);
    }
    match is_split {
        true => remove_file(out)?,
        false => older_volumes(out, 0)?
            .iter()
            .try_for_each(|path| remove_file(path))?,
    }
    Ok(true)
}

/// Removes all unfinished volumes `base`, the first one first.
pub(super) fn remove_volumes(base: &Path) -> io::Result<()> {
    numbers(base)?
        .into_iter()
        .try_for_each(|number| remove_file(&volume_path(base, number)))
}
