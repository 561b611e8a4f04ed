//! The description of a command in a record: an [in-toto Statement]. Its subject is the content
//! that the command was about, and its predicate is the command with its inputs and results.
//!
//! [in-toto Statement]: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md

use super::EvidenceRecord;
use landfall_model::Digest;
use landfall_model::report::{EntryKind, ErrorInfo, ItemStatus, RunStatus, RunTotals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

pub(super) const PREDICATE_TYPE: &str = "urn:landfall:command:v1";

/// Content with its digest: a `ResourceDescriptor` of in-toto.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct NamedDigest {
    /// The file as the user named it, or the kind of content.
    pub name: String,
    /// The digest in hexadecimal digits, by algorithm.
    pub digest: BTreeMap<String, String>,
}

impl NamedDigest {
    pub(crate) fn new(name: impl Into<String>, digest: &Digest) -> NamedDigest {
        let algorithm = digest.algorithm().as_str().to_owned();
        NamedDigest {
            name: name.into(),
            digest: BTreeMap::from([(algorithm, digest.hex())]),
        }
    }

    /// Whether the content has this digest.
    pub(crate) fn is(&self, digest: &Digest) -> bool {
        self.digest.get(digest.algorithm().as_str()) == Some(&digest.hex())
    }
}

/// A file that a command read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct RecordedInput {
    /// `site`, `manifest`, `lock`, `bundle`, `receipt` or `signers`.
    pub role: String,
    #[serde(flatten)]
    pub content: NamedDigest,
}

/// An item that a command did not complete.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LoggedItem {
    pub kind: EntryKind,
    pub name: String,
    pub status: ItemStatus,
}

/// The content that a command deleted.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RemovedContent {
    /// The number of blobs or manifests.
    pub count: usize,
    /// Their digests, sorted; only the first ones if a record cannot contain all.
    pub digests: Vec<String>,
}

/// A command with its inputs and results.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandPredicate {
    /// The verb.
    pub command: String,
    /// The release of landfall.
    pub version: &'static str,
    /// The flags that were given, without their values.
    pub flags: Vec<String>,
    /// The times by the clock of this machine, in UTC.
    pub started_on: String,
    pub finished_on: String,
    /// The files that the command read.
    pub inputs: Vec<RecordedInput>,
    /// The registry and prefix to which the command delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The keys whose signatures the bundle has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
    /// The fingerprints of the keys whose signatures were made or checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<String>,
    /// The series of the bundle, and the number of the bundle in its series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    pub status: RunStatus,
    /// The exit code.
    pub exit: u8,
    pub totals: RunTotals,
    /// Items that failed or are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LoggedItem>,
    /// The content that `gc` or `push --prune` deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<RemovedContent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
}

/// The payload of a record. It is a Statement if `subject` names any content: a Statement without a
/// subject is invalid.
pub(crate) fn statement(subject: &[NamedDigest], predicate: &CommandPredicate) -> Value {
    if subject.is_empty() {
        return json!({"predicateType": PREDICATE_TYPE, "predicate": predicate});
    }
    json!({
        "_type": STATEMENT_TYPE,
        "subject": subject,
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    })
}

/// The fields of a record that are shown in lists of records.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct LoggedCommand {
    /// The number of the record.
    pub seq: u64,
    /// When the command ended.
    pub time: String,
    pub command: String,
    pub status: String,
    pub exit: Option<u64>,
    pub registry: Option<String>,
    /// The release of landfall.
    pub version: String,
}

impl LoggedCommand {
    /// Reads the fields from a record. A record of a later release may lack some of them.
    pub(crate) fn new(record: &EvidenceRecord) -> LoggedCommand {
        let predicate = &record.payload["predicate"];
        let text = |key: &str| predicate[key].as_str().unwrap_or_default().to_owned();
        LoggedCommand {
            seq: record.seq,
            time: text("finishedOn"),
            command: text("command"),
            status: text("status"),
            exit: predicate["exit"].as_u64(),
            registry: predicate["registry"].as_str().map(str::to_owned),
            version: text("version"),
        }
    }
}

/// Whether a record is about content with one of these digests, or its command read that content.
pub(crate) fn names_content(record: &EvidenceRecord, digests: &[&Digest]) -> bool {
    let lists = [
        &record.payload["subject"],
        &record.payload["predicate"]["inputs"],
    ];
    let mut named = lists.into_iter().filter_map(Value::as_array).flatten();
    named.any(|content| {
        digests.iter().any(|digest| {
            content["digest"][digest.algorithm().as_str()].as_str() == Some(&digest.hex())
        })
    })
}

/// The JSON schema of a line.
pub(crate) fn schema() -> Value {
    let digest = json!({"type": "string", "pattern": "^sha(256|512):[0-9a-f]+$"});
    let content = json!({
        "type": "object",
        "properties": {
            "role": {"type": "string", "description": "`site`, `manifest`, `lock`, `bundle`, `receipt` or `signers` (of an input)"},
            "name": {"type": "string", "description": "the file as the user named it, or `lock`"},
            "digest": {"type": "object", "additionalProperties": {"type": "string"},
                "description": "the digest in hexadecimal digits, by algorithm"},
        },
        "required": ["name", "digest"],
    });
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let described = |mut schema: Value, description: &str| {
        schema["description"] = description.into();
        schema
    };
    let time = json!({"type": "string", "format": "date-time"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Record",
        "description": "A line of the evidence log, which --log writes.",
        "type": "object",
        "properties": {
            "seq": {"type": "integer", "minimum": 1, "description": "the number of the record, from 1"},
            "prev": {"anyOf": [digest, {"type": "null"}], "description": "the hash of the record before it; null for the first"},
            "torn": {"type": "object", "properties": {"bytes": {"type": "integer"}, "digest": digest},
                "required": ["bytes", "digest"],
                "description": "the incomplete lines before this record, whose commands were killed while they wrote them"},
            "payload": {
                "type": "object",
                "description": "an in-toto Statement, if it has a subject",
                "properties": {
                    "_type": {"const": "https://in-toto.io/Statement/v1"},
                    "subject": {"type": "array", "items": content, "description": "the bundle and the lock that the command was about"},
                    "predicateType": {"const": PREDICATE_TYPE},
                    "predicate": {
                        "type": "object",
                        "properties": {
                            "command": {"type": "string", "description": "the verb"},
                            "version": {"type": "string", "description": "the release of landfall"},
                            "flags": described(texts.clone(), "the flags that were given, without their values"),
                            "startedOn": time, "finishedOn": time,
                            "inputs": {"type": "array", "items": content, "description": "the files that the command read"},
                            "registry": {"type": "string", "description": "the registry and prefix to which the command delivered"},
                            "signatures": described(texts.clone(), "the keys whose signatures the bundle has"),
                            "signers": described(texts, "the fingerprints of the keys whose signatures were made or checked"),
                            "series": {"type": "string", "description": "the series of the bundle"},
                            "serial": {"type": "integer", "description": "the number of the bundle in its series"},
                            "status": {"enum": ["done", "partial", "failed", "refused"]},
                            "exit": {"type": "integer", "description": "the exit code"},
                            "totals": {"type": "object", "description": "as in reports"},
                            "lost": {"type": "array", "description": "items that failed or are missing: `kind`, `name`, `status`"},
                            "removed": {"type": "object", "description": "the content that gc or push --prune deleted: `count`, and `digests`"},
                            "error": {"type": "object", "description": "the error that ended the command: `message`, `side`, `item`"},
                        },
                        "required": ["command", "version", "flags", "startedOn", "finishedOn", "inputs", "status", "exit", "totals"],
                    },
                },
                "required": ["predicateType", "predicate"],
            },
            "hash": described(digest.clone(), "the SHA-256 of the line up to `,\"hash\":`"),
        },
        "required": ["seq", "prev", "payload", "hash"],
    })
}
