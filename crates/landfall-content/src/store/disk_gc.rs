//! Removes from the store what no lock needs any more.

use super::disk_store::DiskStore;
use super::error::{StoreError, io};
use super::range_journal;
use landfall_model::Digest;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// The kind of a file that nothing needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Waste {
    /// A blob or a manifest.
    Blob,
    /// The beginning, or parts, of one that was never finished.
    Unfinished,
    /// The journal of an unfinished one, which says which ranges are there.
    Journal,
}

impl fmt::Display for Waste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Waste::Blob => "blob",
            Waste::Unfinished => "unfinished",
            Waste::Journal => "journal",
        })
    }
}

/// A file of the store that nothing needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Removed {
    /// What it is.
    pub what: Waste,
    /// Of which content.
    pub digest: Digest,
    /// Its size in bytes.
    pub bytes: u64,
    #[serde(skip)]
    path: PathBuf,
}

/// What a sweep found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskGcReport {
    /// What was removed, or would be.
    pub removed: Vec<Removed>,
    /// How many blobs stay.
    pub kept: usize,
    /// Their size in bytes.
    pub kept_bytes: u64,
    /// Files that do not belong to the store. They stay.
    pub strange: Vec<PathBuf>,
}

/// Removes from the store at `dir` everything but `keep`, names in `index.json` and lines of the
/// journal too; with `dry_run` it only lists them. Unfinished content of `keep` stays, so that it
/// can be resumed.
///
/// # Errors
/// When another process uses the store, or a file cannot be read or removed.
pub fn gc(dir: &Path, keep: &BTreeSet<Digest>, dry_run: bool) -> Result<DiskGcReport, StoreError> {
    let disk = if dry_run {
        DiskStore::open(dir)?
    } else {
        DiskStore::open_alone(dir)?
    };
    let mut swept = DiskGcReport::default();
    for folder in entries(&dir.join("blobs"))? {
        for file in entries(&folder.path())? {
            let name = file.file_name();
            let digest = format!(
                "{}:{}",
                folder.file_name().to_string_lossy(),
                name.to_string_lossy()
            );
            swept.sort_out(&file, digest.parse().ok(), Waste::Blob, keep)?;
        }
    }
    for file in entries(&dir.join(".landfall/partial"))? {
        let name = file.file_name().to_string_lossy().into_owned();
        let (name, what) = match name.strip_suffix(range_journal::SUFFIX) {
            Some(name) => (name, Waste::Journal),
            None => (name.as_str(), Waste::Unfinished),
        };
        swept.sort_out(&file, name.replacen('-', ":", 1).parse().ok(), what, keep)?;
    }
    swept.removed.sort();
    swept.strange.sort();
    if !dry_run {
        // the names first: a name whose content is gone would be worse than content without a name
        disk.forget(keep)?;
        for Removed { path, .. } in &swept.removed {
            std::fs::remove_file(path).map_err(io("remove", path))?;
        }
    }
    Ok(swept)
}

impl DiskGcReport {
    fn sort_out(
        &mut self,
        file: &DirEntry,
        digest: Option<Digest>,
        what: Waste,
        keep: &BTreeSet<Digest>,
    ) -> Result<(), StoreError> {
        let path = file.path();
        let metadata = file.metadata().map_err(io("look at", &path))?;
        match digest.filter(|_| metadata.is_file()) {
            None => self.strange.push(path),
            Some(digest) if keep.contains(&digest) => {
                if what == Waste::Blob {
                    self.kept += 1;
                    self.kept_bytes += metadata.len();
                }
            }
            Some(digest) => self.removed.push(Removed {
                what,
                digest,
                bytes: metadata.len(),
                path,
            }),
        }
        Ok(())
    }
}

fn entries(folder: &Path) -> Result<Vec<DirEntry>, StoreError> {
    let read =
        std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<DirEntry>>>);
    Ok(read.map_err(io("read the folder", folder))?)
}
