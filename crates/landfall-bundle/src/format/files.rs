//! The names of the files of a bundle `B`: volumes `B.0001` … `B.0999`, the checksums
//! `B.sha256sums`, the signature over them, documents, and unfinished files.

use std::path::{Path, PathBuf};

/// The maximum number of volumes, so that `cat B.0*` joins all of them in order.
pub(crate) const MAX_VOLUMES: usize = 999;

/// The path of the bundle that `path` belongs to: `path` without the number of a volume.
pub(crate) fn base_of(path: &Path) -> PathBuf {
    split(path).map_or_else(|| path.into(), |(base, _)| base)
}

/// The path of a volume of the bundle `base`; the first volume has number 1.
pub fn volume_path(base: &Path, number: usize) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    // four digits, so that the order of names is the order of volumes
    path.push(format!(".{number:04}"));
    path.into()
}

/// The last component of a path, for messages.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Splits the name of a volume into the name of its bundle and its number.
pub(crate) fn split(path: &Path) -> Option<(PathBuf, usize)> {
    let digits = path.extension()?.to_str()?;
    let number: usize = digits.parse().ok()?;
    let plain =
        // `parse` accepts a leading plus sign, which no volume has
        digits.len() == 4 && (1..=MAX_VOLUMES).contains(&number) && !digits.starts_with('+');
    plain.then(|| (path.with_extension(""), number))
}

/// The number of the volume of `base` with this file name, in any folder.
pub(crate) fn number_of(base: &Path, path: &Path) -> Option<usize> {
    let (of, number) = split(path)?;
    (of.file_name() == base.file_name()).then_some(number)
}

/// The file with the checksums of the bundle `base`, or of its volumes, and of the programs and
/// documents next to it.
pub(crate) fn checksums_path(base: &Path) -> PathBuf {
    suffixed(base, ".sha256sums")
}

/// The suffixes of the documents next to a bundle: instructions and manual pages.
pub(crate) const DOCUMENTS: [&str; 2] = [".README.txt", ".man.tar"];

/// The file with the signature over the checksums.
pub(crate) fn signature_path(base: &Path) -> PathBuf {
    suffixed(&checksums_path(base), ".sig")
}

/// The path of a file until it is complete.
pub(crate) fn partial_path(path: &Path) -> PathBuf {
    suffixed(path, ".partial")
}

/// `path` with `suffix` after its name.
pub(crate) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
