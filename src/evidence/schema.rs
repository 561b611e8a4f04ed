//! The JSON schema of a line of the log.

use serde_json::{Value, json};

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
                    "predicateType": {"const": super::statement::PREDICATE_TYPE},
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
