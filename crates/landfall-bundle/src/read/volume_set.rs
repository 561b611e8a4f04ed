//! Finds the volumes of a bundle, decides whether a path means volumes or one file, and identifies
//! bad and missing volumes by the checksums next to them.

use super::index::{BundleIndex, footer_ending_at};
use super::verify::{BadVolumes, lost_items};
use super::volume_reader::VolumeReader;
use super::{Bundle, OpenBundle};
use crate::error::{BundleError, lines, loss_lines};
use crate::format::damage::{Damage, Loss};
use crate::format::footer::Footer;
use crate::format::names::{
    ItemName, LAYOUT, checksums_path, file_name, number_of, split, volume_path,
};
use crate::format::stored::PREFIX;
use crate::format::{frame, header};
use landfall_content::parent_folder;
use landfall_model::document::{open_input, read_input};
use landfall_model::report::Progress;
use landfall_model::{Algorithm, Failure, Limits, OCI_LAYOUT, digest_of};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The existing volumes of a bundle: some may be missing, and they may be in several folders.
#[derive(Debug)]
pub(crate) struct VolumeSet {
    /// The path of the bundle in the first folder, without a number.
    pub base: PathBuf,
    /// The paths of the existing volumes, by number.
    pub(crate) found: BTreeMap<usize, PathBuf>,
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
            .map(|base| of_volumes(base))
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
    begins_with(path, &PREFIX)
}

/// Whether a file begins with the first frame of a bundle, the header of `oci-layout`.
pub(crate) fn begins_bundle(path: &Path) -> bool {
    let first = frame::stored(&header::encode(LAYOUT[0], OCI_LAYOUT.len() as u64));
    begins_with(path, &first)
}

/// Whether the file at `path` can be read and begins with these bytes.
pub(crate) fn begins_with(path: &Path, first: &[u8]) -> bool {
    let mut found = Vec::new();
    open_input(path)
        .and_then(|file| file.take(first.len() as u64).read_to_end(&mut found))
        .is_ok_and(|_| found == first)
}

// Reads `B.sha256sums`, the checksum file of bundle `B`. It has the format of `sha256sum`, so that
// a disc can be checked without landfall.

/// The files of the bundle `base` that its checksum file lists, each with its checksum in hex
/// digits. Empty if the checksum file does not exist or cannot be read.
pub(crate) fn read(base: &Path) -> Vec<(PathBuf, String)> {
    let mut text = Vec::new();
    let limit = Limits::default().document_bytes as u64;
    let read =
        open_input(checksums_path(base)).and_then(|file| file.take(limit).read_to_end(&mut text));
    let mut found = Vec::new();
    if read.is_ok() {
        let own = base.file_name().unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n') {
            // `sha256sum` marks a line with an escaped name
            let (line, is_escaped) = match line.strip_prefix(br"\") {
                Some(line) => (line, true),
                None => (line, false),
            };
            let Some((hex, path)) = line
                .split_first_chunk::<64>()
                .filter(|(hex, _)| hex.iter().all(u8::is_ascii_hexdigit))
            else {
                continue;
            };
            // text or binary mode, which do not differ on Unix
            let Some(path) = path
                .strip_prefix(b"  ")
                .or_else(|| path.strip_prefix(b" *"))
            else {
                continue;
            };
            let path = if is_escaped {
                unescaped(path)
            } else {
                path.to_vec()
            };
            let Some(path) = landfall_os::file_name(&path) else {
                continue;
            };
            let path = parent_folder(base).join(path);
            // the file comes with the bundle, so its paths must not lead to other folders
            let is_own = path.parent() == Some(parent_folder(base))
                && (path.file_name() == Some(own) || number_of(base, &path).is_some());
            if is_own {
                found.push((path, String::from_utf8_lossy(hex).to_ascii_lowercase()));
            }
        }
    }
    found
}

/// Whether the file at `path` matches its checksum next to `base`, and so was written with the
/// bundle and not changed since.
pub(crate) fn has(base: &Path, path: &Path) -> bool {
    // a file that cannot be read is not known to be unchanged
    let Ok(hex) = hash_file(path) else {
        return false;
    };
    let line = sum_line(&hex, path.file_name().unwrap_or_default());
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    let text = read_input(checksums_path(base)).unwrap_or_default();
    text.split(|byte| *byte == b'\n').any(|one| one == line)
}

/// A line in the format of `sha256sum`, which escapes names with backslashes and line breaks.
pub(crate) fn sum_line(hex: &str, name: &OsStr) -> Vec<u8> {
    let mut escaped = Vec::new();
    for &byte in name.as_encoded_bytes() {
        match byte {
            b'\\' => escaped.extend(br"\\"),
            b'\n' => escaped.extend(br"\n"),
            b'\r' => escaped.extend(br"\r"),
            _ => escaped.push(byte),
        }
    }
    // `sha256sum` marks a line with an escaped name by a backslash at its beginning
    let mark: &[u8] = if escaped == name.as_encoded_bytes() {
        b""
    } else {
        br"\"
    };
    [mark, hex.as_bytes(), b"  ", &escaped, b"\n"].concat()
}

/// The name that [`sum_line`] escaped.
fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match (byte, bytes.as_slice().first()) {
            (b'\\', Some(escaped)) => {
                bytes.next();
                match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    other => *other,
                }
            }
            _ => byte,
        });
    }
    plain
}

/// The checksums of the volumes of `base` in hex digits, by number.
pub(crate) fn of_volumes(base: &Path) -> BTreeMap<usize, String> {
    read(base)
        .into_iter()
        .filter_map(|(path, sum)| Some((number_of(base, &path)?, sum)))
        .collect()
}

/// The SHA-256 of a file in hex digits.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    Ok(digest_of(&mut open_input(path)?, Algorithm::Sha256)?.hex())
}

/// A bundle that cannot be opened completely.
pub struct UnopenedBundle {
    /// Why the bundle cannot be opened.
    pub error: BundleError,
    /// The bundle without its bad volume, if only one is bad. The items that need that volume count
    /// as missing.
    pub rest: Option<Bundle>,
}

/// Compares the volumes at `locations` with the checksums next to them, after opening them failed
/// with `error`. If volumes are missing, truncated, damaged or of another bundle, the result has an
/// error that lists them and the consequences. Otherwise it has `error` itself.
pub fn name_bad_volumes(
    error: BundleError,
    locations: &[PathBuf],
    progress: &dyn Progress,
) -> UnopenedBundle {
    let (BundleError::Damaged { .. } | BundleError::Missing { .. }) = error else {
        return UnopenedBundle { error, rest: None };
    };
    let Ok(Some(set)) = VolumeSet::of(locations) else {
        return UnopenedBundle { error, rest: None };
    };
    let damaged = damaged(&set, progress);
    let missing = set.missing();
    let numbers: BTreeSet<usize> = damaged
        .keys()
        .copied()
        .chain(missing.iter().copied())
        .collect();
    let Some(first) = numbers.first() else {
        return UnopenedBundle { error, rest: None };
    };
    // if only one volume is bad, its length can be computed from the footer
    let rest = if numbers.len() == 1 {
        open_rest(locations, *first)
    } else {
        None
    };
    let (is_rebuildable, has_lock) = match &rest {
        Some((rest, _)) => (!rest.has_recipes(), true),
        None if numbers.len() > 1 => (false, false),
        None => {
            let opened = open_without(locations, *first, &|why| {
                cannot_rebuild(&set.name(*first), why)
            });
            (opened.is_ok_and(|(rest, _)| !rest.has_recipes()), false)
        }
    };
    let repair = BadVolumes {
        set: &set,
        locations,
        numbers: &numbers,
        is_rebuildable,
        has_lock,
    }
    .repair_advice();
    let (rest, items) = rest.unzip();
    let path = set.base.clone();
    let loss = Some(Loss {
        items,
        has_rest: rest.is_some(),
        repair,
    });
    // if no volume is damaged, a shorter message requests the missing ones
    let error = if damaged.is_empty() {
        let volumes = missing.into_iter().map(|number| set.name(number)).collect();
        BundleError::Missing {
            path,
            volumes,
            loss,
        }
    } else {
        let bad = numbers.iter().map(|number| {
            let why = damaged.get(number).map_or("it is missing", String::as_str);
            format!("{}: {why}", set.name(*number))
        });
        let bad: Vec<String> = bad.collect();
        Failure::refused(format!(
            "{} has missing or damaged volumes\n{}{}",
            path.display(),
            lines(&bad),
            loss_lines(loss.as_ref())
        ))
        .into()
    };
    UnopenedBundle { error, rest }
}

/// The existing volumes that do not match their checksums, by number, with the problem.
fn damaged(set: &VolumeSet, progress: &dyn Progress) -> BTreeMap<usize, String> {
    progress.begin("verify", set.sums.len() as u64, 0);
    let sums = file_name(&checksums_path(&set.base));
    let mut damaged = BTreeMap::new();
    for (number, path) in &set.found {
        // without a checksum, a volume cannot be checked
        let Some(sum) = set.sums.get(number) else {
            continue;
        };
        let why = match hash_file(path) {
            Ok(found) if found == *sum => None,
            Ok(_) => Some(format!("its SHA-256 is not the one in {sums}")),
            Err(source) => Some(format!("cannot be read: {source}")),
        };
        damaged.extend(why.map(|why| (*number, why)));
        progress.item(&set.name(*number));
    }
    progress.end();
    damaged
}

const NO_INDEX: &str = "the contents index is in this volume or in a damaged one, and without it \
                        no volume can be rebuilt; pack the bundle again with the same lock, \
                        --level and --volume-size, which gives the same bytes";

/// The failure to rebuild a volume.
pub(crate) fn cannot_rebuild(volume: &str, why: &str) -> BundleError {
    Failure::refused(format!("cannot rebuild {volume}: {why}")).into()
}

fn no_volume(path: &Path, number: usize, count: usize) -> BundleError {
    let path = path.display();
    let volumes = match count {
        1 => "1 volume".into(),
        _ => format!("{count} volumes"),
    };
    Failure::usage(format!("{path} has {volumes}; there is no volume {number}")).into()
}

/// Opens the split bundle at `locations` without volume `number`. Reading content of that volume
/// then fails. Also returns the byte range of the volume. If the bundle cannot be opened like this,
/// `cannot` turns the reason into an error.
pub(crate) fn open_without(
    locations: &[PathBuf],
    number: usize,
    cannot: &dyn Fn(&str) -> BundleError,
) -> Result<(Bundle, Range<u64>), BundleError> {
    let path = locations.first().cloned().unwrap_or_default();
    let set = VolumeSet::of(locations).map_err(BundleError::open(&path))?;
    let set = set.ok_or_else(|| cannot("there is no other volume"))?;
    let is_beyond = number > set.last;
    let is_listed = !set.sums.is_empty();
    if is_beyond && is_listed {
        return Err(no_volume(&path, number, set.last));
    }
    // the volume may exist but be damaged
    let set = set.without(number);
    let missing: Vec<String> = set
        .missing()
        .into_iter()
        .filter(|other| *other != number)
        .map(|other| set.name(other))
        .collect();
    let others = VolumeReader::over(set.found.values().cloned().collect(), true)?;
    // if the last volume is missing, the other volumes do not end with a footer
    let footer = footer_ending_at(&others, others.length()).ok().flatten();
    let length = footer
        .as_ref()
        .and_then(Footer::bundle_len)
        .unwrap_or_default();
    if is_beyond && length == others.length() {
        return Err(no_volume(&path, number, set.found.len()));
    }
    if !missing.is_empty() {
        let why = "all other volumes are needed, but these are missing, too: ";
        return Err(cannot(&format!("{why}{}", missing.join(", "))));
    }
    let footer = footer.ok_or_else(|| cannot(NO_INDEX))?;
    // the footer states the length of the whole bundle; the lost volume has all bytes that are not
    // in the other volumes
    let gap = length.checked_sub(others.length()).filter(|gap| *gap > 0);
    let gap = gap.ok_or_else(|| {
        cannot("the other volumes are a complete bundle, or belong to different bundles")
    })?;
    let start = others.start(number - 1);
    let volumes = others.with_gap(number - 1, gap, volume_path(&set.base, number));
    let index = BundleIndex::read(&path, &volumes, footer, |_: Damage| cannot(NO_INDEX))?;
    Ok((
        Bundle(Arc::new(OpenBundle::new(locations, volumes, index))),
        start..start + gap,
    ))
}

/// Opens the rest of the split bundle at `locations` without volume `number`. The items that need
/// the volume are reported as missing and returned. `None` if the bundle cannot be opened like
/// this, or the items cannot be determined.
pub(super) fn open_rest(locations: &[PathBuf], number: usize) -> Option<(Bundle, Vec<ItemName>)> {
    let opened = open_without(locations, number, &|why| {
        cannot_rebuild(&number.to_string(), why)
    });
    let (bundle, lost) = opened.ok()?;
    let items = lost_items(&bundle, |entry| !bundle.is_readable_without(&lost, entry))?;
    let mut opened = Arc::into_inner(bundle.0)?;
    opened.partial.extend(items.iter().cloned());
    opened.partial.sort();
    Some((Bundle(Arc::new(opened)), items))
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
