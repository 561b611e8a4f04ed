//! Opens journals, whose last line a crash may have cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Opens or creates a journal for appending lines whose fields are separated by one space. If the
/// last line is incomplete, an empty field is added to it and the line is ended: readers ignore it,
/// and the next line is not appended to it.
pub(super) fn open_journal(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .create(true)
        .append(true)
        .open(path)?;
    // not truncated instead, because another process may be writing the line
    if let Some(last) = file.metadata()?.len().checked_sub(1) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, last)?;
        if byte != *b"\n" {
            file.write_all(b" \n")?;
        }
    }
    Ok(file)
}
