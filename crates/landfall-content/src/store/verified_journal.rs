//! The append-only journal of verified blobs: the digest of each file with its stamp when it was
//! hashed. A file whose stamp is unchanged need not be hashed again.

use crate::FileStamp;
use landfall_model::{Digest, locked};
use landfall_os::FileExt;
use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

/// The journal. Its lines are `DIGEST INODE SECONDS NANOSECONDS SIZE`; the last line of a digest
/// wins.
#[derive(Debug)]
pub(super) struct VerifiedJournal {
    known: Mutex<HashMap<Digest, FileStamp>>,
    file: Mutex<File>,
}

impl VerifiedJournal {
    /// Opens or creates the journal. A last line that was cut off by a crash is ignored.
    pub(super) fn open(path: &Path) -> std::io::Result<VerifiedJournal> {
        let file = open_journal(path)?;
        let bytes = std::fs::read(path)?;
        // lines that cannot be parsed are ignored: their files are hashed again
        let text = String::from_utf8_lossy(&bytes);
        let known = text.lines().filter_map(read_line).collect();
        Ok(VerifiedJournal {
            known: Mutex::new(known),
            file: Mutex::new(file),
        })
    }

    /// Whether the file is unchanged since it was hashed.
    pub(super) fn is_unchanged(&self, digest: &Digest, file_stamp: FileStamp) -> bool {
        locked(&self.known).get(digest) == Some(&file_stamp)
    }

    /// Returns the content of a journal that lists only the digests in `keep`.
    pub(super) fn retained(&self, keep: &BTreeSet<Digest>) -> String {
        let known = locked(&self.known);
        keep.iter()
            .filter_map(|digest| Some(line(digest, *known.get(digest)?)))
            .collect()
    }

    /// Records that a file was hashed and has this digest.
    pub(super) fn add(&self, digest: &Digest, file_stamp: FileStamp) -> std::io::Result<()> {
        let line = line(digest, file_stamp);
        locked(&self.known).insert(digest.clone(), file_stamp);
        let mut file = locked(&self.file);
        // one write per line: in append mode, lines of two processes do not get mixed
        file.write_all(line.as_bytes())
    }
}

fn line(digest: &Digest, file_stamp: FileStamp) -> String {
    format!(
        "{digest} {} {} {} {}\n",
        file_stamp.inode, file_stamp.mtime.0, file_stamp.mtime.1, file_stamp.size
    )
}

fn read_line(line: &str) -> Option<(Digest, FileStamp)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [digest, inode, seconds, nanoseconds, size] = words[..] else {
        return None;
    };
    let file_stamp = FileStamp {
        inode: inode.parse().ok()?,
        mtime: (seconds.parse().ok()?, nanoseconds.parse().ok()?),
        size: size.parse().ok()?,
    };
    Some((digest.parse().ok()?, file_stamp))
}

// Opens journals, whose last line a crash may have cut off.

/// Opens or creates a journal for appending lines whose fields are separated by one space. If the
/// last line is incomplete, an empty field is added to it and the line is ended: readers ignore it,
/// and the next line is not appended to it.
///
/// # Errors
/// If the file cannot be opened, read or written.
pub fn open_journal(path: &Path) -> io::Result<File> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_be_parsed_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("verified");
        let digest = Digest::sha256(b"");
        let file_stamp = FileStamp::at(dir.path()).unwrap();
        let valid = line(&digest, file_stamp);
        let damaged = b"sha256:\xff\xfe 1 2 3 4\n\0\n";
        std::fs::write(&path, [damaged, valid.as_bytes(), b"sha256:ab"].concat()).unwrap();
        let journal = VerifiedJournal::open(&path).unwrap();
        assert!(journal.is_unchanged(&digest, file_stamp));
    }

    #[test]
    fn a_line_that_was_cut_off_is_ignored_and_the_next_line_is_not_appended_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("verified");
        let [cut, next] = ["cut", "next"].map(|text| Digest::sha256(text.as_bytes()));
        let file_stamp = FileStamp {
            inode: 7,
            mtime: (8, 9),
            size: 10,
        };
        let whole = line(&cut, file_stamp);
        let file_stamp = FileStamp::at(dir.path()).unwrap();
        for length in 1..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let journal = VerifiedJournal::open(&path).unwrap();
            assert!(journal.known.lock().unwrap().is_empty(), "{length}");
            journal.add(&next, file_stamp).unwrap();
            let journal = VerifiedJournal::open(&path).unwrap();
            assert!(journal.is_unchanged(&next, file_stamp), "{length}");
            assert_eq!(journal.known.lock().unwrap().len(), 1, "{length}");
        }
    }
}
