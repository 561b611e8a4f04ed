//! Blobs as ranges of files, which the kernel can send.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// A contiguous range of a file that holds bytes of a blob.
#[derive(Debug, Clone)]
pub struct FileRun {
    /// The file, opened for reading.
    pub file: Arc<File>,
    /// The offset of the range in the file.
    pub at: u64,
    /// The length of the range in bytes, at least 1.
    pub length: u64,
}

/// The runs of a blob in order. Each run is checked before it is returned. An error ends the
/// iterator.
pub type FileRuns = Box<dyn Iterator<Item = io::Result<FileRun>> + Send>;
