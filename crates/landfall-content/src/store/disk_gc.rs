//! Garbage collection of the store on disk: removes the content that no lock needs.

use super::disk_content::io;
use super::disk_store::{DiskStore, entries};
use super::partial_file;
use crate::WriteError;
use landfall_model::Digest;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The kind of a file that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, derive_more::Display)]
#[serde(rename_all = "lowercase")]
#[display(rename_all = "lowercase")]
pub enum GarbageKind {
    /// A blob or a manifest.
    Blob,
    /// A partial file of a blob that was never completed.
    Unfinished,
    /// The journal of a partial file.
    Journal,
}

/// A file of the store that no lock needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GarbageFile {
    /// The kind of the file.
    pub what: GarbageKind,
    /// The digest of the blob that the file belongs to.
    pub digest: Digest,
    /// The size of the file in bytes.
    pub bytes: u64,
    #[serde(skip)]
    path: PathBuf,
}

/// The result of a garbage collection of the store on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskGcReport {
    /// The files that were removed, or would be removed in a dry run.
    pub removed: Vec<GarbageFile>,
    /// The number of blobs that are kept.
    pub kept: usize,
    /// The size of the kept blobs in bytes.
    pub kept_bytes: u64,
    /// Files that do not belong to the store, and are kept.
    pub strange: Vec<PathBuf>,
}

/// A garbage collection of the store on disk. No other process can use the store until it ends,
/// unless it is a dry run.
pub struct DiskGc {
    disk: DiskStore,
    dry_run: bool,
}

impl DiskGc {
    /// Locks the store at `dir`. Must be called before the locks are read that say which content to
    /// keep: a command that ends meanwhile may have written a new one, and its content would be
    /// removed.
    ///
    /// # Errors
    /// If another process uses the store, or it cannot be opened.
    pub fn begin(dir: &Path, dry_run: bool) -> Result<DiskGc, WriteError> {
        // a dry run removes no content, so it may run while others use the store
        let disk = if dry_run {
            DiskStore::open(dir)?
        } else {
            DiskStore::open_exclusive(dir)?
        };
        Ok(DiskGc { disk, dry_run })
    }

    /// Returns the store.
    pub fn store(&self) -> &DiskStore {
        &self.disk
    }

    /// Removes all blobs and partial files whose digests are not in `keep`, and removes their names
    /// from `index.json` and their lines from the journal of verified blobs. A dry run only lists
    /// the files that would be removed. Files that landfall did not write are kept.
    ///
    /// # Errors
    /// If a file cannot be read or removed.
    pub fn run(self, keep: &BTreeSet<Digest>) -> Result<DiskGcReport, WriteError> {
        let dir = self.disk.dir();
        let mut report = DiskGcReport::default();
        for (path, digest) in self.disk.blob_files()? {
            report.add_file(path, digest, GarbageKind::Blob, keep)?;
        }
        for file in entries(&dir.join(".landfall/partial"))? {
            let name = file.file_name().to_string_lossy().into_owned();
            let (name, what) = match name.strip_suffix(partial_file::SUFFIX) {
                Some(name) => (name, GarbageKind::Journal),
                None => (name.as_str(), GarbageKind::Unfinished),
            };
            let digest = name.replacen('-', ":", 1).parse().ok();
            report.add_file(file.path(), digest, what, keep)?;
        }
        report.removed.sort();
        report.strange.sort();
        if !self.dry_run {
            // names first: if the run is killed, a blob without a name is harmless, a name without
            // its blob is not
            self.disk.retain(keep)?;
            for GarbageFile { path, .. } in &report.removed {
                std::fs::remove_file(path).map_err(io("remove", path))?;
            }
        }
        Ok(report)
    }
}

impl DiskGcReport {
    /// Counts a file as kept, garbage or foreign.
    fn add_file(
        &mut self,
        path: PathBuf,
        digest: Option<Digest>,
        what: GarbageKind,
        keep: &BTreeSet<Digest>,
    ) -> Result<(), WriteError> {
        let metadata = path.symlink_metadata().map_err(io("look at", &path))?;
        match digest.filter(|_| metadata.is_file()) {
            // not removed: landfall writes only regular files with a digest in their name
            None => self.strange.push(path),
            Some(digest) if keep.contains(&digest) => {
                // partial files and journals are not counted, because they are not content yet
                if what == GarbageKind::Blob {
                    self.kept += 1;
                    self.kept_bytes += metadata.len();
                }
            }
            Some(digest) => self.removed.push(GarbageFile {
                what,
                digest,
                bytes: metadata.len(),
                path,
            }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_next_to_the_folders_of_blobs_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = dir.path().join("blobs");
        DiskStore::open(dir.path()).unwrap();
        std::fs::write(blobs.join("notes.txt"), "mine").unwrap();
        std::os::unix::fs::symlink("nowhere", blobs.join("link")).unwrap();
        let gc = DiskGc::begin(dir.path(), false).unwrap();
        let report = gc.run(&BTreeSet::new()).unwrap();
        assert_eq!(
            report.strange,
            ["link", "notes.txt"].map(|name| blobs.join(name))
        );
        assert!(blobs.join("notes.txt").exists());
    }
}
