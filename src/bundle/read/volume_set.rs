//! Which volumes of a bundle are there, and whether a path means volumes or one file.

use super::checksums;
use crate::bundle::format::files::{file_name, number_of, split, volume_path};
use crate::bundle::format::names::LAYOUT;
use crate::bundle::format::{frame, header};
use crate::content::folder_of;
use crate::model::OCI_LAYOUT;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The volumes of a bundle that are there, perhaps not all.
#[derive(Debug)]
pub(crate) struct VolumeSet {
    /// The name of the bundle, without a number.
    pub base: PathBuf,
    found: BTreeSet<usize>,
    /// Highest number that there must be.
    last: usize,
}

impl VolumeSet {
    /// The volumes that `path` means: those of the bundle with this name where no file has it, or those of
    /// the bundle that it is a volume of. `None` where it means a file.
    pub(crate) fn of(path: &Path) -> io::Result<Option<VolumeSet>> {
        let (base, named) = match split(path) {
            // a file may end in such a number by chance; then it begins as bundles do, and volume 2 does not
            Some((base, number)) if number == 1 || !begins_bundle(path) => (base, number),
            _ if fs::symlink_metadata(path).is_ok() => return Ok(None),
            _ => (path.to_owned(), 0),
        };
        let set = VolumeSet::with(&base, named)?;
        Ok((!set.found.is_empty()).then_some(set))
    }

    /// The volumes of `base`, which has a volume `number`.
    pub(crate) fn with(base: &Path, number: usize) -> io::Result<VolumeSet> {
        let found = numbers(base)?;
        let listed = checksums::read(base).into_iter().filter_map(|(path, _)| number_of(base, &path));
        let last = listed.chain(found.last().copied()).chain([number]).max().unwrap_or(number);
        Ok(VolumeSet { base: base.into(), found, last })
    }

    /// The names of those that are missing.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = (1..=self.last).filter(|number| !self.found.contains(number));
        missing.map(|number| file_name(&volume_path(&self.base, number))).collect()
    }

    /// The paths of all, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (1..=self.last).map(|number| volume_path(&self.base, number))
    }
}

/// Whether `path` means the volumes of a bundle, not one file.
pub(crate) fn is_split(path: &Path) -> bool {
    matches!(VolumeSet::of(path), Ok(Some(_)))
}

/// The numbers of the volumes of `base` that are there.
pub(crate) fn numbers(base: &Path) -> io::Result<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder_of(base))? {
        found.extend(number_of(base, Path::new(&entry?.file_name())));
    }
    Ok(found)
}

/// Whether a file begins with the first frame of a bundle.
fn begins_bundle(path: &Path) -> bool {
    let first = frame::stored(&header::encode(LAYOUT[0], OCI_LAYOUT.len() as u64));
    let mut found = Vec::new();
    let read = File::open(path).and_then(|file| file.take(first.len() as u64).read_to_end(&mut found));
    read.is_ok() && found == first
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let volumes = VolumeSet::of(&at(name)).unwrap()?;
            Some((file_name(&volumes.base), volumes.last, volumes.missing()))
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
