//! Content as runs of files, for whoever has the system send them.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// Bytes of content that lie together in a file.
#[derive(Debug, Clone)]
pub struct FileRun {
    /// The file.
    pub file: Arc<File>,
    /// Where they begin in it.
    pub at: u64,
    /// How many they are; at least one.
    pub length: u64,
}

/// The runs of one blob, in its order.
pub type FileRuns = Box<dyn Iterator<Item = io::Result<FileRun>> + Send>;
