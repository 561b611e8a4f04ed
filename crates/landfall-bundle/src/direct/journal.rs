//! The journal of a direct bundle. It records which content is already in the file of the bundle.
//! Lines are only appended, and their claims are verified before they are used.

use landfall_content::store::open_journal;
use landfall_content::{ByteRange, if_exists, merge_ranges, written_ranges};
use landfall_model::{Digest, locked};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

/// The journal of a direct bundle. Its first line identifies the bundle; each other line is about
/// one blob:
///
/// - `DIGEST has FROM TO`: these bytes of a stored blob are in the file;
/// - `DIGEST lost`: the bytes of a stored blob in the file do not count; earlier `has` and `whole`
///   lines about the blob no longer apply;
/// - `DIGEST whole OFFSET SIZE`: all bytes of a stored blob are in the file, in frames that begin
///   at this offset;
/// - `DIGEST packed FROM TO`: the compressed entry of a blob, with header and padding, has this
///   range of the file.
#[derive(Debug)]
pub(super) struct DirectJournal {
    file: File,
    known: Mutex<JournalRecords>,
}

/// The content of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JournalRecords {
    /// The ranges of each stored blob that are in the file.
    pub there: HashMap<Digest, Vec<ByteRange>>,
    /// The complete stored blobs: the offset of their frames, and their size.
    pub whole: HashMap<Digest, (u64, u64)>,
    /// The ranges of the file that the compressed entries occupy.
    pub packed: HashMap<Digest, ByteRange>,
}

impl JournalRecords {
    fn line(&mut self, line: &str) -> Option<()> {
        let (digest, record) = line.split_once(' ')?;
        let digest: Digest = digest.parse().ok()?;
        let words: Vec<&str> = record.split(' ').collect();
        match words[..] {
            ["lost"] => {
                self.there.remove(&digest);
                self.whole.remove(&digest);
            }
            [word, from, to] => {
                let pair = (from.parse().ok()?, to.parse().ok()?);
                match word {
                    "has" => {
                        let ranges = self.there.entry(digest).or_default();
                        ranges.push(pair);
                        *ranges = merge_ranges(std::mem::take(ranges));
                    }
                    "whole" => drop(self.whole.insert(digest, pair)),
                    "packed" => drop(self.packed.insert(digest, pair)),
                    _ => {}
                }
            }
            _ => {}
        }
        Some(())
    }
}

/// Reads the journal at `path`: the first line, which identifies the bundle, and the records.
/// `None` if there is no journal, or its first line is incomplete.
pub(super) fn read(path: &Path) -> io::Result<Option<(String, JournalRecords)>> {
    let Some(bytes) = if_exists(fs::read(path))? else {
        return Ok(None);
    };
    // a line that a disk error damaged is malformed
    let text = String::from_utf8_lossy(&bytes);
    // a line without a line feed was cut off by a crash
    let mut lines = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    let Some(first) = lines.next() else {
        return Ok(None);
    };
    let mut known = JournalRecords::default();
    for line in lines {
        // a malformed line only costs another download
        let _ = known.line(line);
    }
    Ok(Some((first.into(), known)))
}

impl DirectJournal {
    /// Opens the journal at `path` if it is about the bundle `of`, or else starts a new one.
    pub(super) fn open(path: &Path, of: &str) -> io::Result<DirectJournal> {
        let known = read(path)?
            .filter(|(first, _)| first == of)
            .map(|(_, known)| known);
        if known.is_none() {
            fs::write(path, format!("{of}\n"))?;
        }
        Ok(DirectJournal {
            file: open_journal(path)?,
            known: Mutex::new(known.unwrap_or_default()),
        })
    }

    fn add(&self, line: &str) -> io::Result<()> {
        let mut known = locked(&self.known);
        // parsed as when the journal is read, so that this run and a resumed one have equal records
        let _ = known.line(line);
        (&self.file).write_all(format!("{line}\n").as_bytes())
    }

    pub(super) fn record_range(&self, digest: &Digest, (from, to): ByteRange) -> io::Result<()> {
        self.add(&format!("{digest} has {from} {to}"))
    }

    pub(super) fn record_lost(&self, digest: &Digest) -> io::Result<()> {
        self.add(&format!("{digest} lost"))
    }

    pub(super) fn record_whole(&self, digest: &Digest, offset: u64, size: u64) -> io::Result<()> {
        self.add(&format!("{digest} whole {offset} {size}"))
    }

    pub(super) fn record_packed(&self, digest: &Digest, (from, to): ByteRange) -> io::Result<()> {
        self.add(&format!("{digest} packed {from} {to}"))
    }

    /// The number of leading bytes of a stored blob that are in the file, and the further ranges
    /// after them.
    pub(super) fn written_ranges(&self, digest: &Digest) -> (u64, Vec<ByteRange>) {
        let ranges = locked(&self.known).there.get(digest).cloned();
        written_ranges(ranges.unwrap_or_default())
    }

    /// The range of the file that a compressed entry occupies.
    pub(super) fn packed_at(&self, digest: &Digest) -> Option<ByteRange> {
        locked(&self.known).packed.get(digest).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_read_as_it_was_written_and_opening_it_skips_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        assert_eq!(read(&path).unwrap(), None);
        let a = Digest::sha256(b"a");
        let b = Digest::sha256(b"b");
        let journal = DirectJournal::open(&path, "one").unwrap();
        for range in [(0, 10), (40, 50), (10, 20), (50, 60)] {
            journal.record_range(&a, range).unwrap();
        }
        journal.record_range(&b, (0, 7)).unwrap();
        journal.record_lost(&b).unwrap();
        journal.record_whole(&a, 512, 60).unwrap();
        journal.record_packed(&b, (100, 200)).unwrap();
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{b} has 0 9")).unwrap();
        let journal = DirectJournal::open(&path, "one").unwrap();
        assert_eq!(journal.written_ranges(&a), (20, vec![(40, 60)]));
        assert_eq!(
            (journal.written_ranges(&b), journal.packed_at(&b)),
            ((0, vec![]), Some((100, 200)))
        );
        for range in [(0, 9), (9, 12)] {
            journal.record_range(&b, range).unwrap();
        }
        let (_, known) = read(&path).unwrap().unwrap();
        assert_eq!(
            (&known.there[&b], known.whole[&a]),
            (&vec![(0, 12)], (512, 60)),
            "the torn line is ignored, and the next line is not appended to it"
        );
        drop(journal);
        // only the damaged line is ignored, even if it is not valid UTF-8
        let mut damaged = fs::read(&path).unwrap();
        let last = damaged.len() - 10;
        damaged[last] = 0xff;
        fs::write(&path, damaged).unwrap();
        let journal = DirectJournal::open(&path, "one").unwrap();
        assert_eq!(journal.written_ranges(&a), (20, vec![(40, 60)]));
        assert_eq!(journal.written_ranges(&b), (9, vec![]));
        // a journal of another bundle is ignored
        assert_eq!(
            DirectJournal::open(&path, "two")
                .unwrap()
                .written_ranges(&a),
            (0, vec![])
        );
    }
}
