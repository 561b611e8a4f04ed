//! Detects whether a file has changed since it was hashed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Identifies the content of a file that was hashed. The hash is valid as long as inode,
/// modification time and size stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// The inode number of the file.
    pub inode: u64,
    /// The time of the last modification, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// The size of the file in bytes.
    pub size: u64,
}

impl FileStamp {
    /// Returns the stamp of a file with this metadata.
    pub fn of(metadata: &Metadata) -> FileStamp {
        FileStamp {
            // a file that was replaced by a rename has another inode, even if its time was set back
            inode: metadata.ino(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            size: metadata.len(),
        }
    }
}
