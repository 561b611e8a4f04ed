//! The evidence log: an append-only file of JSON Lines that records commands and their results,
//! each line with the hash of the line before it.
//!
//! This file checks the lines of a log one after another.
//!
//! - `log_file.rs`: the file, its lock, and how a line is appended.
//! - `statement.rs`: the description of a command as an in-toto Statement, and the JSON
//!   schema of a line.

mod log_file;
mod statement;
#[cfg(test)]
mod tests;

use landfall_model::{Digest, Limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, BufRead, Read};

pub(crate) use self::log_file::{EvidenceLog, verify_log};
pub(crate) use self::statement::{
    CommandPredicate, LoggedCommand, LoggedItem, NamedDigest, RecordedInput, RemovedContent,
    names_content, schema, statement,
};

/// A summary of the content of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvidenceSummary {
    /// The number of records.
    pub records: u64,
    /// The hash of the last record.
    pub head: Option<Digest>,
    /// The number of the first line after the last record, if that line is incomplete: its writer
    /// was killed, or the log was cut off.
    pub incomplete_line: Option<u64>,
    /// The number of the record that has the expected hash.
    pub anchor: Option<u64>,
}

/// The state after the lines so far.
#[derive(Default)]
struct EvidenceChain {
    line: u64,
    seq: u64,
    head: Option<Digest>,
    /// The incomplete lines since the last record, and the number of the first of them.
    torn: Vec<u8>,
    torn_from: u64,
}

impl EvidenceChain {
    /// Checks the next line, with its line feed if it has one. Returns its record, or `None` if it
    /// is incomplete, or what is wrong with the log.
    fn push(&mut self, bytes: &[u8]) -> Result<Option<EvidenceRecord>, String> {
        self.line += 1;
        let line = self.line;
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let record = match parse_line(text) {
            Ok(record) => record,
            Err(LineFault::Hash) => {
                return Err(format!(
                    "line {line} was changed: its hash does not belong to its content"
                ));
            }
            Err(LineFault::Form) => {
                if !may_be_torn(text) {
                    return Err(not_a_record(line));
                }
                if self.torn.is_empty() {
                    self.torn_from = line;
                }
                self.torn.extend_from_slice(bytes);
                if self.torn.len() > Limits::DEFAULT.log_record_bytes {
                    return Err(not_a_record(self.torn_from));
                }
                return Ok(None);
            }
        };
        if TornLines::describe(&self.torn) != record.torn {
            let line = if self.torn.is_empty() {
                line
            } else {
                self.torn_from
            };
            return Err(not_a_record(line));
        }
        let expected = self.seq + 1;
        if record.seq > expected {
            let missing = match record.seq - 1 {
                last if last == expected => format!("record {expected} is"),
                last => format!("records {expected} to {last} are"),
            };
            return Err(format!("{missing} missing before line {line}"));
        }
        if record.seq < expected {
            return Err(format!(
                "line {line} has record {} where record {expected} must be: lines were moved or \
                 repeated",
                record.seq
            ));
        }
        if record.prev != self.head {
            return Err(format!(
                "line {line} does not continue the line before it: one of the two was replaced"
            ));
        }
        self.seq = record.seq;
        self.head = Some(record.hash.clone());
        self.torn.clear();
        Ok(Some(record))
    }
}

fn not_a_record(line: u64) -> String {
    format!("line {line} is not a complete record, and no record confirms that it was cut off")
}

/// Reads a whole log and checks it. `visit` gets each record. If `anchor` is given, the log must
/// contain the record with that hash. The inner error says what is wrong with the log.
pub(crate) fn read_log(
    mut log: impl BufRead,
    anchor: Option<&Digest>,
    mut visit: impl FnMut(EvidenceRecord),
) -> io::Result<Result<EvidenceSummary, String>> {
    // one byte more than a line may have, so that a longer line is noticed
    let limit = Limits::DEFAULT.log_record_bytes as u64 + 1;
    let mut chain = EvidenceChain::default();
    let mut found = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        log.by_ref().take(limit).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        if line.len() as u64 == limit {
            return Ok(Err(not_a_record(chain.line + 1)));
        }
        match chain.push(&line) {
            Err(fault) => return Ok(Err(fault)),
            Ok(None) => {}
            Ok(Some(record)) => {
                if anchor == Some(&record.hash) {
                    found = Some(record.seq);
                }
                visit(record);
            }
        }
    }
    Ok(match anchor {
        Some(wanted) if found.is_none() => Err(format!(
            "none of its {} records has the hash {wanted}: records at the end were removed, or the \
             log was replaced",
            chain.seq
        )),
        _ => Ok(EvidenceSummary {
            records: chain.seq,
            head: chain.head,
            incomplete_line: (!chain.torn.is_empty()).then_some(chain.torn_from),
            anchor: found,
        }),
    })
}

/// The text between the hashed part of a line and the hash.
const BEFORE_HASH: &[u8] = b",\"hash\":\"";

/// The text after the hash.
const AFTER_HASH: &[u8] = b"\"}";

/// The length of a hash as text: `sha256:` and 64 digits.
const HASH_LENGTH: usize = 71;

/// The text at the beginning of every record.
const BEGINNING: &[u8] = b"{\"seq\":";

/// A record of the log.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct EvidenceRecord {
    /// The number of the record, from 1.
    pub seq: u64,
    /// The hash of the record before it; `None` for the first.
    pub prev: Option<Digest>,
    /// The incomplete lines between the record before and this one, if commands were killed while
    /// they wrote them.
    pub torn: Option<TornLines>,
    /// The description of a command: an in-toto Statement if it has a subject.
    pub payload: Value,
    /// The hash of this record.
    pub hash: Digest,
}

/// Incomplete lines, which a later record confirms, so that nobody can add, change or remove such
/// lines afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TornLines {
    /// Their size in bytes, with line feeds.
    pub bytes: u64,
    /// The digest of these bytes.
    pub digest: Digest,
}

impl TornLines {
    /// Describes `bytes`, unless there are none.
    fn describe(bytes: &[u8]) -> Option<TornLines> {
        (!bytes.is_empty()).then(|| TornLines {
            bytes: bytes.len() as u64,
            digest: Digest::sha256(bytes),
        })
    }
}

/// The reason why a line is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineFault {
    /// It has another form: it was cut off, or never was a record.
    Form,
    /// Its hash does not belong to its content.
    Hash,
}

/// A record without its hash, in the order in which it is written.
#[derive(Serialize)]
struct HashedPart<'a> {
    seq: u64,
    prev: Option<&'a Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    torn: Option<&'a TornLines>,
    payload: &'a Value,
}

/// Formats a record as a line with its line feed. Also returns the hash of the record.
fn format_line(
    seq: u64,
    prev: Option<&Digest>,
    torn: Option<&TornLines>,
    payload: &Value,
) -> serde_json::Result<(Vec<u8>, Digest)> {
    let mut line = serde_json::to_vec(&HashedPart {
        seq,
        prev,
        torn,
        payload,
    })?;
    // the hash becomes the last member of the object
    line.pop();
    let hash = Digest::sha256(&line);
    line.extend_from_slice(BEFORE_HASH);
    line.extend_from_slice(hash.to_string().as_bytes());
    line.extend_from_slice(AFTER_HASH);
    line.push(b'\n');
    Ok((line, hash))
}

/// Parses a line. `line` does not include the line feed.
fn parse_line(line: &[u8]) -> Result<EvidenceRecord, LineFault> {
    let (hashed, hash) = split_hash(line).ok_or(LineFault::Form)?;
    if Digest::sha256(hashed) != hash {
        return Err(LineFault::Hash);
    }
    serde_json::from_slice(line).map_err(|_| LineFault::Form)
}

/// Splits a line into the part that is hashed and the hash.
fn split_hash(line: &[u8]) -> Option<(&[u8], Digest)> {
    let rest = line.strip_suffix(AFTER_HASH)?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HASH_LENGTH)?)?;
    let written = std::str::from_utf8(hash).ok()?;
    let hash: Digest = written.parse().ok()?;
    // a digest may be written in upper case elsewhere, but here that is a changed byte
    (hash.to_string() == written).then_some(())?;
    Some((rest.strip_suffix(BEFORE_HASH)?, hash))
}

/// Whether a line can be the beginning of a record whose writer was killed.
fn may_be_torn(line: &[u8]) -> bool {
    line.starts_with(BEGINNING) || BEGINNING.starts_with(line)
}

/// A log of three records, the second after an incomplete line.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_seed() -> Vec<u8> {
    const TORN: &[u8] = b"{\"seq\":2,\"pre\n";
    let mut log = Vec::new();
    let mut prev = None;
    for seq in 1..=3 {
        let torn = (seq == 2).then(|| TornLines::describe(TORN)).flatten();
        if torn.is_some() {
            log.extend_from_slice(TORN);
        }
        let payload = serde_json::json!({"predicate": {"command": "push", "exit": 0}});
        if let Ok((line, hash)) = format_line(seq, prev.as_ref(), torn.as_ref(), &payload) {
            log.extend_from_slice(&line);
            prev = Some(hash);
        }
    }
    log
}

/// Reads any bytes as a log. If the log is consistent, its first half must not have more records.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        read_log(bytes, None, |record| {
            LoggedCommand::new(&record);
            names_content(&record, &[&Digest::sha256(b"")]);
        })
    };
    let Ok(Ok(summary)) = read(bytes) else { return };
    let end = bytes.len() / 2;
    // reading may fail: the last line may be cut so that it is not a valid incomplete record
    if let Ok(Ok(cut)) = read(&bytes[..end]) {
        assert!(cut.records <= summary.records);
    }
}
