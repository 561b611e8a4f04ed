//! The fuzz target `evidence`.

use super::statement::{LoggedCommand, names_content};
use super::{TornLines, format_line, read_log};
use landfall_model::Digest;
use serde_json::json;

/// A log of three records, the second after an incomplete line.
pub(crate) fn fuzz_seed() -> Vec<u8> {
    const TORN: &[u8] = b"{\"seq\":2,\"pre\n";
    let mut log = Vec::new();
    let mut prev = None;
    for seq in 1..=3 {
        let torn = (seq == 2).then(|| TornLines::describe(TORN)).flatten();
        if torn.is_some() {
            log.extend_from_slice(TORN);
        }
        let payload = json!({"predicate": {"command": "push", "exit": 0}});
        if let Ok((line, hash)) = format_line(seq, prev.as_ref(), torn.as_ref(), &payload) {
            log.extend_from_slice(&line);
            prev = Some(hash);
        }
    }
    log
}

/// Reads any bytes as a log. If the log is consistent, its first half must not have more records.
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
