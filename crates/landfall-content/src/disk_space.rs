//! Free disk space, compared with what a run needs.

use landfall_model::human_size;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The disk space that a run needs in a folder, and how much is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSpace {
    /// The folder that is written to; it may not exist yet.
    pub folder: PathBuf,
    /// The upper bound of the needed space, in bytes.
    pub needed: u64,
    /// How many bytes this user can still write there.
    pub free: u64,
}

impl DiskSpace {
    /// Measures the free space of the file system that holds `folder`, or would hold it.
    ///
    /// # Errors
    /// If the file system cannot be queried.
    pub fn measure(folder: &Path, needed: u64) -> io::Result<DiskSpace> {
        let absolute = std::path::absolute(folder)?;
        let existing = absolute
            .ancestors()
            // the nearest existing parent is on the file system that the folder will be created on
            .find(|folder| folder.exists())
            .unwrap_or(&absolute);
        let stats = rustix::fs::statvfs(existing)?;
        // `f_bavail`, not `f_bfree`: the blocks reserved for root are not available to this user
        let free = stats.f_bavail.saturating_mul(stats.f_frsize);
        Ok(DiskSpace {
            folder: folder.into(),
            needed,
            free,
        })
    }

    /// Whether the free space suffices.
    pub fn is_enough(&self) -> bool {
        self.needed <= self.free
    }
}

impl fmt::Display for DiskSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "needs at most {} in {}, which has {} free",
            human_size(self.needed),
            self.folder.display(),
            human_size(self.free)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_has_the_free_space_of_its_file_system() {
        let dir = tempfile::tempdir().unwrap();
        let space = DiskSpace::measure(&dir.path().join("a/b"), 1).unwrap();
        // other processes write to the disk meanwhile
        assert!(
            space
                .free
                .abs_diff(DiskSpace::measure(dir.path(), 1).unwrap().free)
                < 4 << 30
        );
        assert!(
            space.is_enough()
                && !DiskSpace::measure(dir.path(), u64::MAX)
                    .unwrap()
                    .is_enough()
        );
    }
}
