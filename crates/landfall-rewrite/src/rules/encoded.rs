//! Rules for encoded texts and for values of Secrets. Encoded are data of Secrets, binary data of
//! `ConfigMap`s, user data of machines, `write_files` of cloud-init and data URLs of Ignition:
//! base64, gzipped or not.

use crate::archive::{compress, decompress};
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole, SpanEdit};
use crate::scan_result::{ScanResult, TextSyntax};
use crate::walk::{MappingContext, NodeContext, ReferenceScanner};
use crate::yaml::YamlNode;
use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Keys of the user data of machines, which may be base64.
const USER_DATA: [&str; 4] = ["userData", "user_data", "UserData", "customData"];

/// Marks values that documents declare as encoded.
pub(super) fn mark_encoded(
    members: &MappingContext<'_>,
    _value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
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

/// Scans the text that `value` encodes, if the document declares it as encoded, or if it is
/// a data URL.
pub(super) fn decode(
    scanner: &ReferenceScanner<'_>,
    value: &str,
    encoded: bool,
    depth: usize,
) -> Option<ScanResult> {
    (encoded || value.starts_with("data:")).then(|| scan(scanner, value, depth))?
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
        decompress(&bytes, limits.unpacked_bytes).ok()??
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
            compress(new.as_bytes()).ok()?
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
    Occurrence::new(0, "", ReferenceRole::Value, ReferenceMeaning::Left(why))
}

/// The style of a base64 text.
struct Base64Style {
    alphabet: &'static Alphabet,
    padded: bool,
    /// The length of all lines except the last; `None` if there is only one line.
    width: Option<usize>,
}

impl Base64Style {
    /// The style of `written`. `None` if its lines have different lengths, so that they could not
    /// be restored.
    fn read(written: &str) -> Option<Base64Style> {
        let mut lines = written.split('\n').map(|line| line.trim_end_matches('\r'));
        let first = lines.next().filter(|line| !line.is_empty())?.len();
        let rest: Vec<usize> = lines.map(str::len).collect();
        let even = rest.iter().rev().skip(1).all(|len| *len == first);
        let fits = rest.last().is_none_or(|last| *last <= first && *last > 0);
        (even && fits).then_some(())?;
        // the two alphabets differ in these characters only (RFC 4648, 5)
        let alphabet = if written.contains(['-', '_']) {
            &URL_SAFE
        } else {
            &STANDARD
        };
        let chars = written
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .count();
        Some(Base64Style {
            alphabet,
            // a text whose length is a multiple of 4 is padded or needs no padding
            padded: chars % 4 == 0,
            width: (!rest.is_empty()).then_some(first),
        })
    }

    fn engine(&self) -> GeneralPurpose {
        let config = GeneralPurposeConfig::new()
            .with_encode_padding(self.padded)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(self.alphabet, config)
    }

    fn decode(&self, written: &str) -> Option<Vec<u8>> {
        let packed: String = written
            .chars()
            .filter(|c| !matches!(c, '\n' | '\r'))
            .collect();
        self.engine().decode(packed).ok()
    }

    fn encode(&self, bytes: &[u8]) -> String {
        let text = self.engine().encode(bytes);
        let Some(width) = self.width else { return text };
        let lines = text
            .as_bytes()
            .chunks(width)
            .map(|line| String::from_utf8_lossy(line).into_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Whether a mapping is a Secret.
pub(super) fn is_secret(members: &MappingContext<'_>) -> bool {
    members.around.in_secrets || matches!(members.kind, "Secret" | "SecretList")
}

/// Marks values of Secrets, so that a diff can mask them.
pub(super) fn mark_secret(
    members: &MappingContext<'_>,
    _value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
) {
    let Some(key) = child.key else { return };
    child.secret |= is_secret(members) && matches!(key, "data" | "stringData" | "literals");
    // neither the items of a SecretList nor the entries of kustomize's `secretGenerator` have a
    // kind
    child.in_secrets |=
        key == "secretGenerator" || (members.kind == "SecretList" && key == "items");
}
