//! Records which ranges of a partial file are written, while several connections fetch one blob. A
//! partial file without a journal is complete from its first byte to its end.

use super::journal_file::open_journal;
use crate::ByteRange;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The journal of a partial file. Its lines are `FROM TO`, in the order of the writes.
#[derive(Debug)]
pub(super) struct RangeJournal(Mutex<File>);

impl RangeJournal {
    /// Opens or creates the journal of the partial file at `path`.
    pub(super) fn open(path: &Path) -> std::io::Result<RangeJournal> {
        let file = open_journal(&journal_path(path))?;
        Ok(RangeJournal(Mutex::new(file)))
    }

    /// Records that a range was written.
    pub(super) fn add(&self, (from, to): ByteRange) -> std::io::Result<()> {
        let mut file = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // one write per line, so that a killed process leaves at most one incomplete line
        file.write_all(format!("{from} {to}\n").as_bytes())
    }
}

/// The extension of a journal's file name.
pub(super) const SUFFIX: &str = ".ranges";

fn journal_path(path: &Path) -> PathBuf {
    path.with_extension(&SUFFIX[1..])
}

/// Reads the journal of the partial file at `path`, which is `length` bytes long. Returns the
/// length of the contiguous beginning that is written, and the ranges after it; `None` if there is
/// no journal.
pub(super) fn read(path: &Path, length: u64) -> Option<(u64, Vec<ByteRange>)> {
    let text = std::fs::read_to_string(journal_path(path)).ok()?;
    // a crash may have cut off the last line
    let lines = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n')?.split_once(' '));
    let all = lines
        .filter_map(|(from, to)| Some((from.parse().ok()?, to.parse::<u64>().ok()?.min(length))));
    // a crash may also have lost data that the journal already lists, so no range exceeds `length`
    let mut ranges = crate::merge_ranges(all.collect());
    let written = match ranges.first() {
        Some(&(0, to)) => {
            ranges.remove(0);
            to
        }
        _ => 0,
    };
    Some((written, ranges))
}

/// Removes the journal of the partial file at `path`, if there is one.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(journal_path(path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_lists_the_beginning_and_the_ranges_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sha256-aa");
        assert_eq!(read(&path, 100), None);
        let journal = RangeJournal::open(&path).unwrap();
        for range in [(0, 10), (40, 50), (50, 60), (10, 20), (80, 200)] {
            journal.add(range).unwrap();
        }
        assert_eq!(read(&path, 100), Some((20, vec![(40, 60), (80, 100)])));
        assert_eq!(read(&path, 0), Some((0, vec![])));
        // cut off in the middle of a line
        std::fs::write(journal_path(&path), "0 10\n10 2").unwrap();
        assert_eq!(read(&path, 100), Some((10, vec![])));
        let journal = RangeJournal::open(&path).unwrap();
        journal.add((30, 40)).unwrap();
        assert_eq!(read(&path, 100), Some((10, vec![(30, 40)])));
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(read(&path, 100), None);
    }
}
