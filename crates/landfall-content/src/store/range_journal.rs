//! The journal of a partial file, while several connections fetch one blob: which ranges are there.
//! Without a journal a partial file is content from its beginning to its end.

use crate::ByteRange;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The journal of a partial file. Lines are `from to`, in the order in which they were written.
#[derive(Debug)]
pub(super) struct Journal(Mutex<File>);

impl Journal {
    /// Opens or begins the journal of the partial file at `path`.
    pub(super) fn open(path: &Path) -> std::io::Result<Journal> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(beside(path))?;
        Ok(Journal(Mutex::new(file)))
    }

    /// Records bytes that were written.
    pub(super) fn add(&self, (from, to): ByteRange) -> std::io::Result<()> {
        let mut file = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(format!("{from} {to}\n").as_bytes())
    }
}

/// The suffix of a journal's name.
pub(super) const SUFFIX: &str = ".ranges";

fn beside(path: &Path) -> PathBuf {
    path.with_extension(&SUFFIX[1..])
}

/// How far the partial file at `path` is whole, and the ranges behind that, by its journal; `None`
/// where it has no journal. Nothing can lie behind the `length` bytes of the file.
pub(super) fn read(path: &Path, length: u64) -> Option<(u64, Vec<ByteRange>)> {
    let text = std::fs::read_to_string(beside(path)).ok()?;
    // a last line without its end was cut off by a crash
    let lines = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n')?.split_once(' '));
    let all = lines
        .filter_map(|(from, to)| Some((from.parse().ok()?, to.parse::<u64>().ok()?.min(length))));
    let mut apart = crate::merge_ranges(all.collect());
    let begin = match apart.first() {
        Some(&(0, to)) => {
            apart.remove(0);
            to
        }
        _ => 0,
    };
    Some((begin, apart))
}

/// Removes the journal of the partial file at `path`, if it has one.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(beside(path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_tells_the_beginning_and_what_lies_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sha256-aa");
        assert_eq!(read(&path, 100), None);
        let journal = Journal::open(&path).unwrap();
        for range in [(0, 10), (40, 50), (50, 60), (10, 20), (80, 200)] {
            journal.add(range).unwrap();
        }
        assert_eq!(read(&path, 100), Some((20, vec![(40, 60), (80, 100)])));
        assert_eq!(read(&path, 0), Some((0, vec![])));
        // cut off in the middle of a line
        std::fs::write(beside(&path), "0 10\n10 2").unwrap();
        assert_eq!(read(&path, 100), Some((10, vec![])));
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(read(&path, 100), None);
    }
}
