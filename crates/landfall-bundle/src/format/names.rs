//! Names that the format defines: of entries, items, the files of a bundle and its volumes, and
//! of the bases of a delta.

use landfall_item::lockfile::lost_referrer_name;
use landfall_model::report::EntryKind;
use landfall_model::{Digest, Failure, INDEX_FILE, LAYOUT_FILE, parse_size};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The names of the first two entries, which make the tar an OCI image layout.
pub(crate) const LAYOUT: [&str; 2] = [LAYOUT_FILE, INDEX_FILE];
/// The name of the lock's entry.
pub(crate) const LOCK: &str = landfall_item::lockfile::FILE_NAME;
/// The number of entries before the blobs: the layout's files, and the lock.
pub(crate) const FRONT_LEN: usize = LAYOUT.len() + 1;
/// The name of the frame table's entry.
pub(crate) const FRAMES: &str = "landfall-frames";
/// The name of the contents index's entry.
pub(crate) const CONTENTS: &str = "landfall-contents.json";
/// The word in `requires` for a bundle that needs content of its bases.
pub(crate) const DELTA: &str = "delta";
/// The word in `requires` for a bundle with recipes in place of blobs.
pub(crate) const RECIPE: &str = "recipe";
/// The prefix of the names of entries with recipes.
pub(crate) const RECIPE_PREFIX: &str = "landfall-recipe-";
/// The media type of a recipe.
pub(crate) const RECIPE_TYPE: &str = "application/vnd.landfall.recipe.v1";

/// The namespace of signatures over contents indexes (PROTOCOL.sshsig).
pub(crate) const NAMESPACE: &str = "landfall-bundle-v1";
/// The namespace of signatures over the checksum file.
pub(crate) const SUMS_NAMESPACE: &str = "landfall-sums-v1";

/// The identity of an item in a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ItemName {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name in the lock.
    pub name: String,
}

impl ItemName {
    pub(crate) fn new(kind: EntryKind, name: impl Into<String>) -> ItemName {
        let name = name.into();
        ItemName { kind, name }
    }

    /// The identity of a referrer, or a part of one, of the item `of`.
    pub(crate) fn of_referrer(of: &str, digest: &Digest) -> ItemName {
        ItemName::new(
            EntryKind::Referrer,
            lost_referrer_name(of, &digest.to_string()),
        )
    }
}

/// An item of the lock that is missing from a bundle, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{} {}: {reason}", item.kind, item.name)]
pub struct MissingItem {
    /// The item that is missing.
    pub item: ItemName,
    /// The digest, if the lock has one.
    pub digest: Option<Digest>,
    /// Why the item is missing.
    pub reason: String,
}

// The names of the files of a bundle `B`: volumes `B.0001` … `B.0999`, the checksums
// `B.sha256sums`, the signature over them, documents, and unfinished files.

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

/// The identity of a base, as the contents index of a delta records it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, derive_more::Display,
)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum BaseName {
    /// A bundle, which may be a delta itself.
    #[display("bundle {digest} (lock {lock})")]
    Bundle {
        /// The bundle digest: SHA-256 of its contents index.
        digest: Digest,
        /// The fingerprint of the bundle's lock.
        lock: Digest,
    },
    /// A lock: the delta fits every receiver who has all content of the lock.
    #[display("a bundle of lock {lock}")]
    Lock {
        /// The fingerprint of the lock.
        lock: Digest,
    },
    /// The receipt of a push to a registry.
    #[display("content of lock {lock} at {registry}")]
    Receipt {
        /// Fingerprint of the lock that was pushed.
        lock: Digest,
        /// The registry that received the push, `host[:port]`.
        registry: String,
        /// A repository of the registry for each omitted blob.
        repositories: BTreeMap<Digest, String>,
    },
}

// The size of volumes, as users write it.

/// The number of bytes that the last volume reserves for the end of the tar, the signatures and the
/// footer, so that signatures can be added later.
pub(crate) const TAIL: u64 = 4 << 10;

/// The maximum size of a volume, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeSize(pub u64);

impl FromStr for VolumeSize {
    type Err = Failure;

    /// Parses a size, or a medium: `dvd`, `bd`, `fat32`. On a disc some space is left for the
    /// program and the file system.
    fn from_str(text: &str) -> Result<VolumeSize, Failure> {
        let bytes = match text.to_ascii_lowercase().as_str() {
            // a disc has 4.7 GB, but files in ISO 9660 must be smaller than 4 GiB, in sectors of 2
            // KiB
            "dvd" => (4 << 30) - 2048,
            // a disc has 25.02 GB
            "bd" => 24_800_000_000,
            "fat32" => (4 << 30) - 1,
            _ => parse_size(text)
                .map_err(|error| Failure::usage(format!("{error}; or dvd, bd, fat32")))?,
        };
        if bytes < TAIL {
            Err(Failure::usage(format!(
                "volumes have at least {TAIL} bytes"
            )))
        } else {
            Ok(VolumeSize(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_sizes_are_parsed() {
        let size = |text: &str| text.parse::<VolumeSize>().map(|size| size.0);
        assert_eq!(
            (size("4.7G"), size("4GiB")),
            (Ok(4_700_000_000), Ok(4 << 30))
        );
        assert!(size("dvd").unwrap() < 4 << 30 && size("fat32").unwrap() < 4 << 30);
        assert!(size("BD").unwrap() < 25_000_000_000);
        assert_eq!(size("4KiB"), Ok(TAIL));
        for bad in ["0", "10", "4095", "cd", "-1", ""] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
