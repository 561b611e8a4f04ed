//! Finds the volumes of a bundle, and decides whether a path means volumes or one file.

use super::checksums;
use crate::format::files::{file_name, number_of, split, volume_path};
use crate::format::names::LAYOUT;
use crate::format::stored::PREFIX;
use crate::format::{frame, header};
use landfall_content::parent_folder;
use landfall_model::OCI_LAYOUT;
use landfall_model::document::open_input;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The existing volumes of a bundle: some may be missing, and they may be in several folders.
#[derive(Debug)]
pub(crate) struct VolumeSet {
    /// The path of the bundle in the first folder, without a number.
    pub base: PathBuf,
    found: BTreeMap<usize, PathBuf>,
    /// The checksums of the volumes in hex digits, by number. Empty if there is no checksum file.
    pub sums: BTreeMap<usize, String>,
    /// The highest number of a volume that must exist.
    pub last: usize,
}

impl VolumeSet {
    /// Finds the volumes at `locations`. The first location is the name of the bundle (if no file
    /// has that name), any volume, or a folder with the volumes of one bundle; the other locations
    /// are further volumes or folders. `None` if the first location is a bundle in one file or a
    /// folder without exactly one split bundle, or if no volume exists.
    pub(crate) fn of(locations: &[PathBuf]) -> io::Result<Option<VolumeSet>> {
        let Some((first, more)) = locations.split_first() else {
            return Ok(None);
        };
        let (base, named) = match split(first) {
            // the name of a bundle in one file may end like that of a volume. The content of the
            // file then begins like volume 1; the content of volumes 2 and later does not
            Some((base, number)) if number == 1 || !begins_bundle(first) => (base, number),
            _ if first.is_dir() => match only_bundle(first)? {
                Some(base) => (base, 0),
                None => return Ok(None),
            },
            _ if fs::symlink_metadata(first).is_ok() => return Ok(None),
            _ => (first.clone(), 0),
        };
        let set = VolumeSet::with(&base, more, named)?;
        Ok((!set.found.is_empty()).then_some(set))
    }

    /// Finds the volumes of `base` next to it and at the locations `more`. If volume `number` does
    /// not exist, it counts as missing.
    fn with(base: &Path, more: &[PathBuf], number: usize) -> io::Result<VolumeSet> {
        let mut bases = vec![base.to_path_buf()];
        bases.extend(more.iter().map(|location| in_folder(base, location)));
        let mut found = BTreeMap::new();
        for base in &bases {
            for number in numbers(base)? {
                found
                    .entry(number)
                    // the first folder with a volume wins
                    .or_insert_with(|| volume_path(base, number));
            }
        }
        let sums = bases
            .iter()
            .map(|base| checksums::of_volumes(base))
            .find(|sums| !sums.is_empty());
        let sums = sums.unwrap_or_default();
        // the checksums show how many volumes there must be, even if the last ones are missing
        let listed = sums.last_key_value().map_or(0, |(last, _)| *last);
        // the names of unrelated files may also end like those of volumes
        found.retain(|number, path| listed == 0 || *number <= listed || begins_volume(path));
        let last = found
            .last_key_value()
            .map_or(0, |(last, _)| *last)
            .max(listed)
            .max(number);
        Ok(VolumeSet {
            base: base.into(),
            found,
            sums,
            last,
        })
    }

    /// Removes volume `number`, which then counts as missing.
    pub(crate) fn without(mut self, number: usize) -> VolumeSet {
        self.found.remove(&number);
        self.last = self.last.max(number);
        self
    }

    /// The numbers of the missing volumes.
    pub(crate) fn missing(&self) -> Vec<usize> {
        (1..=self.last)
            .filter(|number| !self.found.contains_key(number))
            .collect()
    }

    /// The file name of a volume.
    pub(crate) fn name(&self, number: usize) -> String {
        file_name(&volume_path(&self.base, number))
    }

    /// The paths of the existing volumes, by number.
    pub(crate) fn found(&self) -> &BTreeMap<usize, PathBuf> {
        &self.found
    }
}

/// Whether `locations` are volumes of a bundle, not one file.
pub fn is_split(locations: &[PathBuf]) -> bool {
    matches!(VolumeSet::of(locations), Ok(Some(_)))
}

/// The locations of the bundle at `first`: `first` itself, and each path in `others` with further
/// volumes of the bundle. Removes these paths from `others`. This lets users name each disc or
/// each volume.
pub fn volume_locations(first: PathBuf, others: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let mut locations = vec![first];
    others.retain(|other| {
        let Ok(Some(set)) = VolumeSet::of(&locations) else {
            return true;
        };
        let base = in_folder(&set.base, other);
        let is_of_bundle = other.is_dir() || split(other).is_some_and(|(named, _)| named == base);
        let new = numbers(&base).unwrap_or_default();
        // if one of these volumes was found elsewhere, `other` is another copy of the bundle
        let are_new = new.iter().all(|number| {
            set.found
                .get(number)
                .is_none_or(|path| *path == volume_path(&base, *number))
        });
        let has_more = is_of_bundle && !new.is_empty() && are_new;
        if has_more {
            locations.push(other.clone());
        }
        !has_more
    });
    locations
}

/// The path of the bundle `base` in the folder `location`, or in the folder of the file `location`.
fn in_folder(base: &Path, location: &Path) -> PathBuf {
    let folder = if location.is_dir() {
        location
    } else {
        parent_folder(location)
    };
    folder.join(base.file_name().unwrap_or_default())
}

/// The bundle whose volumes are in `folder`, if there is only one.
fn only_bundle(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut bases = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        bases.extend(split(&entry?.path()).map(|(base, _)| base));
    }
    // with several bundles in a folder, the user must name one
    Ok(if bases.len() == 1 {
        bases.pop_first()
    } else {
        None
    })
}

/// The numbers of the existing volumes of `base`.
pub(crate) fn numbers(base: &Path) -> io::Result<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(parent_folder(base))? {
        found.extend(number_of(base, Path::new(&entry?.file_name())));
    }
    Ok(found)
}

/// Whether a file begins like a volume: with a frame header.
pub(crate) fn begins_volume(path: &Path) -> bool {
    let mut first = [0; PREFIX.len()];
    open_input(path)
        .and_then(|mut file| file.read_exact(&mut first))
        .is_ok_and(|()| first == PREFIX)
}

/// Whether a file begins with the first frame of a bundle, the header of `oci-layout`.
pub(crate) fn begins_bundle(path: &Path) -> bool {
    let first = frame::stored(&header::encode(LAYOUT[0], OCI_LAYOUT.len() as u64));
    let mut found = Vec::new();
    open_input(path)
        .and_then(|file| file.take(first.len() as u64).read_to_end(&mut found))
        .is_ok_and(|_| found == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_file_or_volumes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let first = frame::stored(&header::encode("oci-layout", 30));
        for name in [
            "B.0001",
            "B.0003",
            "B.0000",
            "B.1000",
            "B.00x1",
            "B.001",
            "B.0001.partial",
            "C.0004",
        ] {
            fs::write(at(name), b"x").unwrap();
        }
        fs::write(at("date.0131"), &first).unwrap();
        let meant = |name: &str| {
            let volumes = VolumeSet::of(&[at(name)]).unwrap()?;
            Some((file_name(&volumes.base), volumes.last, volumes.missing()))
        };
        let two = || Some(("B".to_owned(), 3, vec![2]));
        assert_eq!(
            (meant("B"), meant("B.0001"), meant("B.0003")),
            (two(), two(), two())
        );
        assert_eq!(meant("B.0005").unwrap().2, [2, 4, 5]);
        assert_eq!(
            (
                meant("B.1000"),
                meant("B.0000"),
                meant("date.0131"),
                meant("D")
            ),
            (None, None, None, None)
        );
        assert_eq!(meant("C").unwrap().2, [1, 2, 3]);
        fs::write(at("B"), b"x").unwrap();
        assert_eq!((meant("B"), meant("B.0002")), (None, two()));
    }
    #[test]
    fn volumes_of_one_bundle_are_found_in_the_given_folders() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in [
            "1/V.0001",
            "2/V.0002",
            "2/V.txt",
            "3/V.0003",
            "old/V.0001",
            "old/V.0002",
            "mixed/V.0004",
            "mixed/W.0001",
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), PREFIX).unwrap();
        }
        let locations = |named: &[&str]| {
            let mut others: Vec<PathBuf> = named[1..].iter().map(|name| at(name)).collect();
            (volume_locations(at(named[0]), &mut others), others)
        };
        for named in [
            ["1", "2", "3"],
            ["1/V.0001", "2/V.0002", "3/V.0003"],
            ["3/V.0003", "2", "1/V.0001"],
            ["1/V", "2", "3"],
        ] {
            let (locations, others) = locations(&named);
            let set = VolumeSet::of(&locations).unwrap().unwrap();
            assert_eq!((set.missing(), others), (vec![], vec![]), "{named:?}");
            assert_eq!(set.found[&2], at("2/V.0002"));
        }
        // another bundle with this name, and a file whose name is not that of a volume
        assert_eq!(locations(&["1/V.0001", "old/V.0001"]).1, [at("old/V.0001")]);
        assert_eq!(locations(&["1", "2/V.txt", "3"]).1, [at("2/V.txt")]);
        assert!(VolumeSet::of(&[at("mixed")]).unwrap().is_none());
    }

    #[test]
    fn an_unlisted_file_named_like_a_volume_is_ignored_unless_it_begins_like_one() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("app");
        fs::write(volume_path(&base, 1), PREFIX).unwrap();
        fs::write(volume_path(&base, 131), "a log").unwrap();
        let last = || {
            VolumeSet::of(std::slice::from_ref(&base))
                .unwrap()
                .unwrap()
                .last
        };
        assert_eq!(last(), 131);
        let sums = format!("{}  app.0001\n", "0".repeat(64));
        fs::write(dir.path().join("app.sha256sums"), sums).unwrap();
        assert_eq!(last(), 1);
        fs::write(volume_path(&base, 131), PREFIX).unwrap();
        assert_eq!(
            last(),
            131,
            "the checksums do not list it, but it begins like a volume"
        );
    }
}
