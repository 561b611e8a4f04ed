//! The errors of the evidence log.

use landfall_model::Digest;
use std::io;
use std::path::PathBuf;

/// An error from reading or writing the evidence log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvidenceError {
    #[error("cannot open the log {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot lock the log {path}: {source}")]
    Lock { path: PathBuf, source: io::Error },
    #[error("cannot read the log {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write to the log {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("the log {path} is damaged: {fault}")]
    Damaged { path: PathBuf, fault: EvidenceFault },
    #[error("the log {path} is damaged: its last line {why}")]
    End { path: PathBuf, why: &'static str },
}

/// A fault in the lines of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EvidenceFault {
    #[error("line {line} is not a complete record, and no record confirms that it was cut off")]
    Form { line: u64 },
    #[error("line {line} was changed: its hash does not belong to its content")]
    Changed { line: u64 },
    #[error("{} missing before line {line}", record_range(*.first, *.last))]
    Missing { line: u64, first: u64, last: u64 },
    #[error(
        "line {line} has record {seq} where record {expected} must be: lines were moved or repeated"
    )]
    Order { line: u64, seq: u64, expected: u64 },
    #[error("line {line} does not continue the line before it: one of the two was replaced")]
    Replaced { line: u64 },
    #[error(
        "none of its {records} records has the hash {wanted}: records at the end were removed, or \
         the log was replaced"
    )]
    Anchor { records: u64, wanted: Digest },
}

fn record_range(first: u64, last: u64) -> String {
    if first == last {
        format!("record {first} is")
    } else {
        format!("records {first} to {last} are")
    }
}

impl EvidenceError {
    /// The fix that the user can try.
    pub(crate) fn help(&self) -> Option<String> {
        match self {
            EvidenceError::End { path, .. } => Some(format!(
                "`landfall log verify {}` reports details; if it is not a log, name another file",
                path.display()
            )),
            _ => None,
        }
    }
}
