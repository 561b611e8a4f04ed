//! One line of the log: a record, and its hash over everything before the hash.

use landfall_model::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    #[serde(default)]
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
    pub(super) fn describe(bytes: &[u8]) -> Option<TornLines> {
        (!bytes.is_empty()).then(|| TornLines {
            bytes: bytes.len() as u64,
            digest: Digest::sha256(bytes),
        })
    }
}

/// The reason why a line is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFault {
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
pub(super) fn format_line(
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
pub(super) fn parse_line(line: &[u8]) -> Result<EvidenceRecord, LineFault> {
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
pub(super) fn may_be_torn(line: &[u8]) -> bool {
    line.starts_with(BEGINNING) || BEGINNING.starts_with(line)
}
