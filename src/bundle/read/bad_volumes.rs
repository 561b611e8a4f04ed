//! Which volumes are bad: found by the checksums beside them, where the bundle itself cannot tell.

use super::checksums::{self, hash_file};
use super::volume_set::VolumeSet;
use crate::bundle::error::Error;
use crate::bundle::format::files::{checksums_path, file_name, number_of};
use crate::report::Progress;
use std::path::Path;

/// Compares the volumes that `path` means with the checksums beside them, after opening or reading them has failed with
/// `error`. Returns an error that names all volumes that are missing, cut short, damaged or of another bundle; or
/// `error` itself where that says no more, or there are no checksums.
pub(crate) fn name_bad_volumes(error: Error, path: &Path, progress: &dyn Progress) -> Error {
    let (Error::Damaged { .. } | Error::Missing { .. }) = error else { return error };
    let Ok(Some(volumes)) = VolumeSet::of(path) else { return error };
    let sums = checksums::read(&volumes.base);
    let missing = volumes.missing();
    progress.begin("verify", sums.len() as u64, 0);
    let mut bad = Vec::new();
    for (path, sum) in sums.iter().filter(|(path, _)| number_of(&volumes.base, path).is_some()) {
        let volume = file_name(path);
        if missing.contains(&volume) {
            continue;
        }
        match hash_file(path) {
            Ok(found) if found == *sum => {}
            Ok(_) => bad.push(format!(
                "{volume}: it does not have the SHA-256 that {} gives it",
                file_name(&checksums_path(&volumes.base))
            )),
            Err(source) => bad.push(format!("{volume}: cannot be read: {source}")),
        }
        progress.item(&volume);
    }
    progress.end();
    if bad.is_empty() {
        return error;
    }
    bad.extend(missing.iter().map(|volume| format!("{volume}: it is missing")));
    bad.sort();
    Error::Volumes { path: volumes.base, bad }
}
