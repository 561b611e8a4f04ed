//! Base64 texts, gzipped or not: data of Secrets, binary data of `ConfigMap`s, user data of
//! machines, `write_files` of cloud-init, data URLs of Ignition.

use crate::edit::SpanEdit;
use crate::gzip::{self, Base64Style};
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::scan_result::{ScanResult, TextSyntax};
use crate::walk::{MappingContext, NodeContext, ReferenceRule, ReferenceScanner};
use crate::yaml::YamlNode;

/// Keys of the user data of machines, which may be base64.
const USER_DATA: [&str; 4] = ["userData", "user_data", "UserData", "customData"];

pub(super) struct EncodedRule;

impl ReferenceRule for EncodedRule {
    fn entry<'s>(
        &self,
        members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        child: &mut NodeContext<'s>,
    ) {
        child.encoded |= match child.key {
            Some("data") => members.kind == "Secret",
            Some("binaryData") => true,
            Some("content") => members
                .encoding
                .is_some_and(|encoding| encoding.contains("64") || encoding.starts_with("gz")),
            Some(key) => USER_DATA.contains(&key),
            None => false,
        }
    }

    fn decode(
        &self,
        scanner: &ReferenceScanner<'_>,
        value: &str,
        encoded: bool,
        depth: usize,
    ) -> Option<ScanResult> {
        (encoded || value.starts_with("data:")).then(|| scan(scanner, value, depth))?
    }
}

/// Scans the text that `value` encodes. `None` if it is not the base64 of a text.
fn scan(scanner: &ReferenceScanner<'_>, value: &str, depth: usize) -> Option<ScanResult> {
    let start = match value.split_once(";base64,") {
        Some((head, _)) if value.starts_with("data:") => head.len() + ";base64,".len(),
        _ => value.len() - value.trim_start().len(),
    };
    let written = value[start..].trim_end();
    let base64 = Base64Style::read(written)?;
    let bytes = base64.decode(written)?;
    let limits = &scanner.settings.limits;
    // the first bytes of every gzip file (RFC 1952, 2.3.1)
    let zipped = bytes.starts_with(&[0x1f, 0x8b]);
    let bytes = if zipped {
        gzip::decompress(&bytes, limits.unpacked_bytes).ok()??
    } else {
        bytes
    };
    // a null byte is valid UTF-8, but only binaries contain it
    let text = String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))?;
    // each level of encoding multiplies the work, so texts at deeper levels are only reported
    if depth + 1 >= limits.embedded_depth {
        let reported = scanner.settings.index.may_be_in(&text);
        let found = reported
            .then(|| too_deep(limits.embedded_depth))
            .into_iter()
            .collect();
        return Some(ScanResult {
            found,
            ..ScanResult::nothing()
        });
    }
    let mut inner = scanner
        .scan(&text, TextSyntax::Document, depth + 1)
        .with_lines(&text);
    let new = inner.apply(&text);
    let encode = |new: String| -> Option<SpanEdit> {
        let bytes = if zipped {
            gzip::compress(new.as_bytes()).ok()?
        } else {
            new.into_bytes()
        };
        Some(SpanEdit {
            span: start..start + written.len(),
            bytes: base64.encode(&bytes),
        })
    };
    // one edit replaces the whole encoded text, so the first changed occurrence gets it
    let mut edit = if new == text { None } else { encode(new) };
    let how = if zipped { "gzip, base64" } else { "base64" };
    for occurrence in &mut inner.found {
        let deeper = occurrence
            .inside
            .as_ref()
            .map_or_else(String::new, |inside| format!(", {inside}"));
        let Occurrence { line, column, .. } = occurrence;
        occurrence.inside = Some(format!("{how}, line {line}, column {column}{deeper}"));
        occurrence.at = start;
        let changes = !occurrence.edits.is_empty();
        occurrence.edits.clear();
        if changes {
            occurrence.edits.extend(edit.take());
        }
    }
    Some(inner)
}

/// The occurrence that reports content in too many layers of encoding.
fn too_deep(limit: usize) -> Occurrence {
    let why = format!("base64 within {limit} or more texts is not read");
    Occurrence::new(0, "", ReferenceRole::Value, ReferenceMeaning::Left { why })
}
