//! Transparency log entries for signatures that are published without their entry, such as those of
//! Kubernetes' release binaries: the query to the log, and the part of its answer that locks keep.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::from_json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The path of Rekor's search for an entry (version 1 of its API).
const SEARCH: &str = "/api/v1/log/entries/retrieve";

/// An entry of a transparency log, without its body, which is computed from the file and its
/// signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// The position in the log.
    pub index: u64,
    /// When the log added the entry, in seconds since 1970.
    pub time: i64,
    /// The SHA-256 of the log's public key, in hex.
    pub log: String,
    /// The log's signature of the entry, in base64.
    pub promise: String,
}

/// The body of a log entry: a signature of a file (`hashedrekord` 0.0.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedSignature(Value);

/// A query that asks a transparency log for an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuery {
    /// The URL to which the query is sent, by POST.
    pub url: String,
    body: LoggedSignature,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundEntry {
    body: String,
    integrated_time: i64,
    log_index: u64,
    #[serde(rename = "logID")]
    log_id: String,
    verification: EntryVerification,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryVerification {
    signed_entry_timestamp: String,
}

impl LoggedSignature {
    /// The body for a signature of a file. `digest` is the SHA-256 of the file in hex, `signature`
    /// is in base64, and `verifier` is the certificate or key in PEM.
    pub(crate) fn new(digest: &str, signature: &str, verifier: &str) -> LoggedSignature {
        LoggedSignature(json!({
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": digest}},
                "signature": {
                    "content": signature,
                    "publicKey": {"content": STANDARD.encode(verifier)},
                },
            },
        }))
    }

    /// The bytes that the log has signed, in base64. The members have the order of RFC 8785.
    fn base64(&self) -> String {
        STANDARD.encode(self.0.to_string())
    }

    /// Returns `entry` in the form in which cosign stores it next to signatures of images.
    pub(crate) fn annotation(&self, entry: &LogEntry) -> String {
        let annotation = json!({
            "SignedEntryTimestamp": entry.promise,
            "Payload": {
                "body": self.base64(),
                "integratedTime": entry.time,
                "logIndex": entry.index,
                "logID": entry.log,
            },
        });
        annotation.to_string()
    }
}

impl LogQuery {
    /// The query that asks the log at `base` for an entry with this body.
    pub(crate) fn new(base: &str, body: LoggedSignature) -> LogQuery {
        LogQuery {
            url: format!("{}{SEARCH}", base.trim_end_matches('/')),
            body,
        }
    }

    /// Returns the JSON document to send.
    pub fn request(&self) -> String {
        json!({"entries": [self.body.0]}).to_string()
    }

    /// Finds the entry in the log's answer by its body; the log's signature is not verified.
    /// Returns `None` if the log has no such entry.
    ///
    /// # Errors
    /// If `answer` is not the answer of a log.
    pub fn find(&self, answer: &[u8]) -> Result<Option<LogEntry>, String> {
        let body = self.body.base64();
        let entries: Vec<BTreeMap<String, FoundEntry>> = from_json(answer)
            .map_err(|error| format!("{}: not the answer of a log: {error}", self.url))?;
        let mut entries = entries.into_iter().flat_map(BTreeMap::into_values);
        let found = entries.find(|entry| entry.body == body);
        Ok(found.map(|entry| LogEntry {
            index: entry.log_index,
            time: entry.integrated_time,
            log: entry.log_id,
            promise: entry.verification.signed_entry_timestamp,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_entry_with_the_same_body_is_found_in_an_answer() {
        let query = LogQuery::new(
            "https://rekor.test/",
            LoggedSignature::new("aa", "c2ln", "PEM"),
        );
        assert_eq!(query.url, "https://rekor.test/api/v1/log/entries/retrieve");
        let body: Value = serde_json::from_str(&query.request()).unwrap();
        let body = STANDARD.encode(body["entries"][0].to_string());
        let answer = |body: &str| {
            let entry = json!({
                "body": body, "integratedTime": 7, "logID": "ab", "logIndex": 3,
                "verification": {"signedEntryTimestamp": "cHJvbWlzZQ==", "inclusionProof": {}},
            });
            json!([{"24296fb2": entry}]).to_string()
        };
        let found = query.find(answer(&body).as_bytes()).unwrap();
        let expected = LogEntry {
            index: 3,
            time: 7,
            log: "ab".into(),
            promise: "cHJvbWlzZQ==".into(),
        };
        assert_eq!(found, Some(expected));
        assert_eq!(query.find(answer("b3RoZXI=").as_bytes()), Ok(None));
        assert_eq!(query.find(b"[]"), Ok(None));
        assert!(
            query
                .find(b"<html>")
                .unwrap_err()
                .starts_with("https://rekor.test/")
        );
    }
}
