//! Checks the lines of a log one after another: each hash, the order, and that no line is missing.

use super::error::EvidenceFault;
use super::record::{EvidenceRecord, LineFault, TornLines, may_be_torn, parse_line};
use landfall_model::{Digest, Limits};
use std::io::{self, BufRead, Read};

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
    /// is incomplete.
    fn push(&mut self, bytes: &[u8]) -> Result<Option<EvidenceRecord>, EvidenceFault> {
        self.line += 1;
        let line = self.line;
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let record = match parse_line(text) {
            Ok(record) => record,
            Err(LineFault::Hash) => return Err(EvidenceFault::Changed { line }),
            Err(LineFault::Form) => {
                if !may_be_torn(text) {
                    return Err(EvidenceFault::Form { line });
                }
                if self.torn.is_empty() {
                    self.torn_from = line;
                }
                self.torn.extend_from_slice(bytes);
                if self.torn.len() > Limits::DEFAULT.log_record_bytes {
                    return Err(EvidenceFault::Form {
                        line: self.torn_from,
                    });
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
            return Err(EvidenceFault::Form { line });
        }
        let expected = self.seq + 1;
        if record.seq > expected {
            return Err(EvidenceFault::Missing {
                line,
                first: expected,
                last: record.seq - 1,
            });
        }
        if record.seq < expected {
            return Err(EvidenceFault::Order {
                line,
                seq: record.seq,
                expected,
            });
        }
        if record.prev != self.head {
            return Err(EvidenceFault::Replaced { line });
        }
        self.seq = record.seq;
        self.head = Some(record.hash.clone());
        self.torn.clear();
        Ok(Some(record))
    }
}

/// An error that ends the reading of a log.
#[derive(Debug)]
pub(crate) enum ReadLogError {
    Read(io::Error),
    Fault(EvidenceFault),
}

/// Reads a whole log and checks it. `visit` gets each record. If `anchor` is given, the log must
/// contain the record with that hash.
pub(crate) fn read_log(
    mut log: impl BufRead,
    anchor: Option<&Digest>,
    mut visit: impl FnMut(EvidenceRecord),
) -> Result<EvidenceSummary, ReadLogError> {
    // one byte more than a line may have, so that a longer line is noticed
    let limit = Limits::DEFAULT.log_record_bytes as u64 + 1;
    let mut chain = EvidenceChain::default();
    let mut found = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        log.by_ref()
            .take(limit)
            .read_until(b'\n', &mut line)
            .map_err(ReadLogError::Read)?;
        if line.is_empty() {
            break;
        }
        if line.len() as u64 == limit {
            let line = chain.line + 1;
            return Err(ReadLogError::Fault(EvidenceFault::Form { line }));
        }
        if let Some(record) = chain.push(&line).map_err(ReadLogError::Fault)? {
            if anchor == Some(&record.hash) {
                found = Some(record.seq);
            }
            visit(record);
        }
    }
    match anchor {
        Some(wanted) if found.is_none() => Err(ReadLogError::Fault(EvidenceFault::Anchor {
            records: chain.seq,
            wanted: wanted.clone(),
        })),
        _ => Ok(EvidenceSummary {
            records: chain.seq,
            head: chain.head,
            incomplete_line: (!chain.torn.is_empty()).then_some(chain.torn_from),
            anchor: found,
        }),
    }
}
