//! How a file looks: what tells whether content that was hashed is still what is there.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// How a file looked when its content was hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Its inode.
    pub inode: u64,
    /// When it was changed last, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// Its size in bytes.
    pub size: u64,
}

impl FileStamp {
    /// How a file with this metadata looks.
    pub fn of(metadata: &Metadata) -> FileStamp {
        FileStamp {
            inode: metadata.ino(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            size: metadata.len(),
        }
    }
}
