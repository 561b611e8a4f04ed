//! The file of a log: opened for appending, locked against other processes, and synced.

use super::{
    EvidenceRecord, EvidenceSummary, LineFault, TornLines, format_line, may_be_torn, parse_line,
    read_log,
};
use landfall_content::{parent_folder, sync_folder};
use landfall_model::document::open_input;
use landfall_model::report::TransferSide;
use landfall_model::{Digest, Failure, Limits};
use landfall_os::without_waiting;
use serde_json::Value;
use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// The number of attempts to get a lock that another process holds. A writer holds it for
/// milliseconds.
const LOCK_ATTEMPTS: usize = 3000;
/// The pause between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A log that no other process writes to, until it is dropped.
pub(crate) struct EvidenceLog {
    path: PathBuf,
    file: File,
}

/// The end of a log, after which the next record is appended.
struct LogEnd {
    seq: u64,
    head: Option<Digest>,
    /// The incomplete lines after the last record, which killed commands left. Each ends with a
    /// line feed, even if the file lacks the last one: [`EvidenceLog::append`] writes it.
    torn: Vec<u8>,
    /// Whether the last byte is not a line feed.
    is_open: bool,
}

impl EvidenceLog {
    /// Opens or creates the log at `path`, and waits until no other process uses it. Fails after
    /// [`LOCK_ATTEMPTS`] attempts.
    pub(crate) fn open(path: &Path) -> Result<EvidenceLog, Failure> {
        let failed = |error: io::Error| failed("open", path, &error);
        let is_new = !path.exists();
        let mut options = File::options();
        options.read(true).append(true).create(true);
        let file = without_waiting(&mut options).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        if is_new {
            sync_folder(parent_folder(path)).map_err(failed)?;
        }
        let path = path.to_path_buf();
        wait_for_lock(&path, || file.try_lock())?;
        Ok(EvidenceLog { path, file })
    }

    /// Checks that a record can be appended. Returns whether the last line is incomplete, because
    /// the command that wrote it was killed.
    pub(crate) fn check_end(&mut self) -> Result<bool, Failure> {
        self.end().map(|end| !end.torn.is_empty())
    }

    /// Appends a record with this payload and syncs the file. Incomplete lines at the end stay, and
    /// the record confirms them.
    pub(crate) fn append(&mut self, payload: &Value) -> Result<Digest, Failure> {
        let end = self.end()?;
        let mut bytes = Vec::new();
        if end.is_open {
            bytes.push(b'\n');
        }
        let torn = TornLines::describe(&end.torn);
        let failed = |error: io::Error| failed("write to", &self.path, &error);
        let (line, hash) = format_line(end.seq + 1, end.head.as_ref(), torn.as_ref(), payload)
            .map_err(|error| failed(error.into()))?;
        if line.len() > Limits::DEFAULT.log_record_bytes {
            return Err(failed(io::Error::other("the record is too long")));
        }
        bytes.extend_from_slice(&line);
        // one write: a reader never sees the line feed without the record
        (&self.file).write_all(&bytes).map_err(failed)?;
        self.file.sync_all().map_err(failed)?;
        Ok(hash)
    }

    /// Reads the end of the file.
    fn end(&mut self) -> Result<LogEnd, Failure> {
        let failed = |error: io::Error| failed("read", &self.path, &error);
        let bad = |why: &str| {
            let path = self.path.display();
            Failure::refused(format!("the log {path} is damaged: {why}")).with_help(format!(
                "`landfall log verify {path}` reports details; if it is not a log, name \
                     another file"
            ))
        };
        // the size of the longest record plus that of the longest incomplete lines that a reader
        // accepts
        let window = 2 * Limits::DEFAULT.log_record_bytes as u64;
        let length = self.file.metadata().map_err(failed)?.len();
        let start = length.saturating_sub(window);
        let mut bytes = Vec::new();
        (&self.file).seek(SeekFrom::Start(start)).map_err(failed)?;
        (&self.file)
            .take(window)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        let is_open = bytes.last().is_some_and(|byte| *byte != b'\n');
        let log_end = |seq, head, mut torn: Vec<u8>| {
            if is_open && !torn.is_empty() {
                torn.push(b'\n');
            }
            // a reader refuses longer incomplete lines, even if a record confirms them
            if torn.len() > Limits::DEFAULT.log_record_bytes {
                return Err(bad(
                    "its last line and the incomplete lines before it are too long",
                ));
            }
            Ok(LogEnd {
                seq,
                head,
                torn,
                is_open,
            })
        };
        let mut end = bytes.len();
        let mut torn_from = end;
        while end > 0 {
            let line = bytes[..end].strip_suffix(b"\n").unwrap_or(&bytes[..end]);
            let line_start = line.iter().rposition(|byte| *byte == b'\n');
            let line_start = line_start.map_or(0, |feed| feed + 1);
            match parse_line(&line[line_start..]) {
                Ok(EvidenceRecord { seq, hash, .. }) => {
                    return log_end(seq, Some(hash), bytes.split_off(torn_from));
                }
                Err(LineFault::Hash) => return Err(bad("its last line was changed")),
                Err(LineFault::Form) if may_be_torn(&line[line_start..]) => torn_from = line_start,
                Err(LineFault::Form) => {
                    return Err(bad("its last line is not a record of landfall"));
                }
            }
            end = line_start;
        }
        if start > 0 {
            return Err(bad("its last line is not a record of landfall"));
        }
        log_end(0, None, bytes)
    }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::failed(format!("cannot {action} the log {path}: {error}"))
        .on(TransferSide::Destination)
}

/// Waits for a lock that other processes hold only while they read or write the log.
fn wait_for_lock(
    path: &Path,
    try_lock: impl Fn() -> Result<(), TryLockError>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| failed("lock", path, &error);
    for _ in 0..LOCK_ATTEMPTS {
        match try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(failed(io::Error::other("another process holds its lock")))
}

/// Reads the log at `path` and checks all of it, as [`read_log`] does.
pub(crate) fn verify_log(
    path: &Path,
    anchor: Option<&Digest>,
    visit: impl FnMut(EvidenceRecord),
) -> Result<EvidenceSummary, Failure> {
    let file = open_input(path).map_err(|error| failed("open", path, &error))?;
    // a writer may be in the middle of a line
    wait_for_lock(path, || file.try_lock_shared())?;
    read_log(BufReader::new(&file), anchor, visit)
        .map_err(|error| failed("read", path, &error))?
        .map_err(|fault| {
            Failure::refused(format!("the log {} is damaged: {fault}", path.display()))
        })
}
