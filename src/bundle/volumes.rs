//! Volumes `B.0001` … `B.0999`: their names, their sizes, and which of them are there.

use super::{frame, header, sums};
use crate::model::parse_size;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Most volumes that a bundle may have, so that `cat B.0*` joins them all, in order.
pub(super) const MAX_VOLUMES: usize = 999;

/// The size that volumes may have, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeSize(pub(super) u64);

/// Why a text is no size of volumes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeSizeError {
    /// It is no size.
    #[error("{0}; or dvd, bd, fat32")]
    Text(String),
    /// Nothing fits.
    #[error("volumes have at least one byte")]
    Empty,
}

impl FromStr for VolumeSize {
    type Err = VolumeSizeError;

    /// Reads a size, or a medium: `dvd`, `bd`, `fat32`. On a disc some room is left beside the volume, for
    /// the program and what a file system needs.
    fn from_str(text: &str) -> Result<VolumeSize, VolumeSizeError> {
        let bytes = match text.to_ascii_lowercase().as_str() {
            // of 4.7 GB; ISO 9660 has files under 4 GiB, in sectors of 2 KiB
            "dvd" => (4 << 30) - 2048,
            // of 25.02 GB
            "bd" => 24_800_000_000,
            "fat32" => (4 << 30) - 1,
            _ => parse_size(text).map_err(|error| VolumeSizeError::Text(error.to_string()))?,
        };
        if bytes == 0 { Err(VolumeSizeError::Empty) } else { Ok(VolumeSize(bytes)) }
    }
}

/// The volumes of a bundle that are there, perhaps not all.
#[derive(Debug)]
pub(super) struct Volumes {
    /// The name of the bundle, without a number.
    pub base: PathBuf,
    found: BTreeSet<usize>,
    /// Highest number that there must be.
    last: usize,
}

impl Volumes {
    /// The volumes that `path` means: those of the bundle with this name where no file has it, or those of
    /// the bundle that it is a volume of. `None` where it means a file.
    pub(super) fn of(path: &Path) -> io::Result<Option<Volumes>> {
        let (base, named) = match split(path) {
            // a file may end in such a number by chance; then it begins as bundles do, and volume 2 does not
            Some((base, number)) if number == 1 || !begins_bundle(path) => (base, number),
            _ if fs::symlink_metadata(path).is_ok() => return Ok(None),
            _ => (path.to_owned(), 0),
        };
        let found = numbers(&base)?;
        let Some(&last) = found.last() else { return Ok(None) };
        let listed = sums::read(&base).iter().filter_map(|(path, _)| number_of(&base, path)).max();
        let last = last.max(named).max(listed.unwrap_or(0));
        Ok(Some(Volumes { base, found, last }))
    }

    /// The names of those that are missing.
    pub(super) fn missing(&self) -> Vec<String> {
        let missing = (1..=self.last).filter(|number| !self.found.contains(number));
        missing.map(|number| name(&path(&self.base, number))).collect()
    }

    /// The paths of all, in order.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (1..=self.last).map(|number| path(&self.base, number))
    }
}

/// Whether `path` means the volumes of a bundle, and no file.
pub fn is_split(path: &Path) -> bool {
    matches!(Volumes::of(path), Ok(Some(_)))
}

/// The bundle that a path means when it is one of its volumes, or its name without a number.
pub(super) fn base(path: &Path) -> PathBuf {
    split(path).map_or_else(|| path.into(), |(base, _)| base)
}

/// Where a volume of the bundle `base` lies; the first has number 1.
pub(super) fn path(base: &Path, number: usize) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(format!(".{number:04}"));
    path.into()
}

/// The last part of a path, for messages.
pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The folder that a file lies in.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The bundle that a file is a volume of by its name, and its number.
fn split(path: &Path) -> Option<(PathBuf, usize)> {
    let digits = path.extension()?.to_str()?;
    let number: usize = digits.parse().ok()?;
    let plain = digits.len() == 4 && (1..=MAX_VOLUMES).contains(&number) && !digits.starts_with('+');
    plain.then(|| (path.with_extension(""), number))
}

/// The numbers of the volumes of `base` that are there.
pub(super) fn numbers(base: &Path) -> io::Result<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder(base))? {
        found.extend(number_of(base, Path::new(&entry?.file_name())));
    }
    Ok(found)
}

/// The number of the volume of `base` that is called so, in whatever folder.
pub(super) fn number_of(base: &Path, path: &Path) -> Option<usize> {
    let (of, number) = split(path)?;
    (of.file_name() == base.file_name()).then_some(number)
}

/// Takes a file away if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Takes all volumes of `base` away, the first one first: without it the others are no bundle.
pub(super) fn remove_all(base: &Path) -> io::Result<()> {
    numbers(base)?.into_iter().try_for_each(|number| remove(&path(base, number)))
}

/// Whether a file begins with the first frame of a bundle.
fn begins_bundle(path: &Path) -> bool {
    let first =
        frame::stored(&header::encode(super::contents::FRONT[0], super::plan::OCI_LAYOUT.len() as u64));
    let mut found = Vec::new();
    let read = File::open(path).and_then(|file| file.take(first.len() as u64).read_to_end(&mut found));
    read.is_ok() && found == first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_volumes() {
        let size = |text: &str| text.parse::<VolumeSize>().map(|size| size.0);
        assert_eq!((size("4.7G"), size("4GiB")), (Ok(4_700_000_000), Ok(4 << 30)));
        assert!(size("dvd").unwrap() < 4 << 30 && size("fat32").unwrap() < 4 << 30);
        assert!(size("BD").unwrap() < 25_000_000_000);
        for bad in ["0", "cd", "-1", ""] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_means_a_file_or_volumes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let first = frame::stored(&header::encode("oci-layout", 30));
        for name in ["B.0001", "B.0003", "B.0000", "B.1000", "B.00x1", "B.001", "B.0001.partial", "C.0004"] {
            fs::write(at(name), b"x").unwrap();
        }
        fs::write(at("date.0131"), &first).unwrap();
        let meant = |name: &str| {
            let volumes = Volumes::of(&at(name)).unwrap()?;
            Some((super::name(&volumes.base), volumes.last, volumes.missing()))
        };
        let two = || Some(("B".to_owned(), 3, vec!["B.0002".to_owned()]));
        assert_eq!((meant("B"), meant("B.0001"), meant("B.0003")), (two(), two(), two()));
        assert_eq!(meant("B.0005").unwrap().2, ["B.0002", "B.0004", "B.0005"]);
        assert_eq!(
            (meant("B.1000"), meant("B.0000"), meant("date.0131"), meant("D")),
            (None, None, None, None)
        );
        assert_eq!(meant("C").unwrap().2, ["C.0001", "C.0002", "C.0003"]);
        fs::write(at("B"), b"x").unwrap();
        assert_eq!((meant("B"), meant("B.0002")), (None, two()));
    }
}
