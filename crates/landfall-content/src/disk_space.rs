//! Room on a disk: what is needed, and what is free there.

use landfall_model::human_size;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What is needed in a folder, and what is free there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSpace {
    /// The folder.
    pub folder: PathBuf,
    /// Bytes that are needed at the most.
    pub needed: u64,
    /// Bytes that this user can write there.
    pub free: u64,
}

impl DiskSpace {
    /// The room in `folder`, or where it would be made.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn of(folder: &Path, needed: u64) -> io::Result<DiskSpace> {
        let absolute = std::path::absolute(folder)?;
        let there = absolute
            .ancestors()
            .find(|folder| folder.exists())
            .unwrap_or(&absolute);
        let system = rustix::fs::statvfs(there)?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        Ok(DiskSpace {
            folder: folder.into(),
            needed,
            free,
        })
    }

    /// Whether it is enough.
    pub fn is_enough(&self) -> bool {
        self.needed <= self.free
    }
}

impl fmt::Display for DiskSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, free) = (human_size(self.needed), human_size(self.free));
        write!(
            f,
            "needs at most {needed} in {}, which has {free} free",
            self.folder.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_a_folder_that_is_not_there_is_that_of_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        let room = DiskSpace::of(&dir.path().join("a/b"), 1).unwrap();
        // others write to the disk meanwhile
        assert!(
            room.free
                .abs_diff(DiskSpace::of(dir.path(), 1).unwrap().free)
                < 4 << 30
        );
        assert!(room.is_enough() && !DiskSpace::of(dir.path(), u64::MAX).unwrap().is_enough());
    }
}
