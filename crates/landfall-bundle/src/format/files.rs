//! Names of the files that a bundle `B` is made of and that stand beside it: volumes `B.0001` …
//! `B.0999`, the checksums `B.sha256sums`, the signature over these, and unfinished files.

use std::path::{Path, PathBuf};

/// Most volumes that a bundle may have, so that `cat B.0*` joins them all, in order.
pub(crate) const MAX_VOLUMES: usize = 999;

/// The bundle that a path means when it is one of its volumes, or its name without a number.
pub(crate) fn base_of(path: &Path) -> PathBuf {
    split(path).map_or_else(|| path.into(), |(base, _)| base)
}

/// Where a volume of the bundle `base` lies; the first has number 1.
pub(crate) fn volume_path(base: &Path, number: usize) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(format!(".{number:04}"));
    path.into()
}

/// The last part of a path, for messages.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// The bundle that a file is a volume of by its name, and its number.
pub(crate) fn split(path: &Path) -> Option<(PathBuf, usize)> {
    let digits = path.extension()?.to_str()?;
    let number: usize = digits.parse().ok()?;
    let plain =
        digits.len() == 4 && (1..=MAX_VOLUMES).contains(&number) && !digits.starts_with('+');
    plain.then(|| (path.with_extension(""), number))
}

/// The number of the volume of `base` with this name, in any folder.
pub(crate) fn number_of(base: &Path, path: &Path) -> Option<usize> {
    let (of, number) = split(path)?;
    (of.file_name() == base.file_name()).then_some(number)
}

/// Where the checksums of the files of the bundle `base` stand: those of its volumes, or its own,
/// and those of the programs beside it.
pub(crate) fn checksums_path(base: &Path) -> PathBuf {
    suffixed(base, ".sha256sums")
}

/// What the names of the documents beside a bundle add to its own: what to do with it, and the
/// manual pages.
pub(crate) const DOCUMENTS: [&str; 2] = [".README.txt", ".man.tar"];

/// Where the signature over these checksums stands.
pub(crate) fn signature_path(base: &Path) -> PathBuf {
    suffixed(&checksums_path(base), ".sig")
}

/// Where a file stands until it is complete.
pub(crate) fn partial_path(path: &Path) -> PathBuf {
    suffixed(path, ".partial")
}

/// `path` with `suffix` after its name.
pub(crate) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
