//! Texts in base64, gzipped or not: data of Secrets, `write_files` of cloud-init, data URLs of Ignition.

use crate::model::Limits;
use crate::rewrite::findings::{Finding, Meaning, Splice};
use crate::rewrite::known::Position;
use crate::rewrite::scan::{Engine, Kind};
use crate::rewrite::walk::{Entries, value};
use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::read::MultiGzDecoder;
use std::io::Read;

/// Keys of machines' user data, which may be base64.
const USER_DATA: [&str; 4] = ["userData", "user_data", "UserData", "customData"];

/// Whether what stands under `key` of a mapping of this `kind` is base64, in itself or below.
pub(in crate::rewrite) fn is_encoded(kind: &str, key: &str, entries: &Entries<'_>) -> bool {
    match key {
        "data" => kind == "Secret",
        "binaryData" => true,
        "content" => value(entries, "encoding")
            .is_some_and(|encoding| encoding.contains("64") || encoding.starts_with("gz")),
        key => USER_DATA.contains(&key),
    }
}

/// What is in the text that `value` is the base64 of, `depth` texts deep; `None` where it is none.
pub(in crate::rewrite) fn scan(engine: &Engine<'_>, value: &str, depth: usize) -> Option<Vec<Finding>> {
    let start = match value.split_once(";base64,") {
        Some((head, _)) if value.starts_with("data:") => head.len() + ";base64,".len(),
        _ => value.len() - value.trim_start().len(),
    };
    let written = value[start..].trim_end();
    let base64 = Base64::read(written)?;
    let bytes = base64.decode(written)?;
    let zipped = bytes.starts_with(&[0x1f, 0x8b]);
    let bytes = if zipped { unzip(&bytes, &engine.limits)? } else { bytes };
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    if depth + 1 >= engine.limits.embedded_depth {
        return Some(
            engine
                .known
                .may_stand_in(&text)
                .then(|| too_deep(engine.limits.embedded_depth))
                .into_iter()
                .collect(),
        );
    }
    let mut inner = engine.scan(&text, Kind::Document, depth + 1).placed(&text);
    let new = inner.apply(&text);
    let mut splice = (new != text)
        .then(|| -> Option<Splice> {
            let bytes =
                if zipped { crate::rewrite::archive::zipped(new.as_bytes()).ok()? } else { new.into_bytes() };
            Some(Splice { span: start..start + written.len(), bytes: base64.encode(&bytes) })
        })
        .flatten();
    let how = if zipped { "gzip, base64" } else { "base64" };
    for finding in &mut inner.found {
        let deeper = finding.inside.as_ref().map_or_else(String::new, |inside| format!(", {inside}"));
        finding.inside = Some(format!("{how}, line {}, column {}{deeper}", finding.line, finding.column));
        finding.at = start;
        let changes = !finding.splices.is_empty();
        finding.splices.clear();
        if changes {
            finding.splices.extend(splice.take());
        }
    }
    Some(inner.found)
}

/// What stands in for encoded content that is too deep to be looked into.
fn too_deep(limit: usize) -> Finding {
    let why = format!("base64 within more than {limit} other texts is not looked into");
    Finding::new(0, "", Position::Value, Meaning::Left { why })
}

/// How the author wrote base64.
struct Base64 {
    alphabet: &'static Alphabet,
    padded: bool,
    /// The length of each line but the last, where there are several.
    width: Option<usize>,
}

impl Base64 {
    /// `None` where `written` is no base64 that comes out the same again.
    fn read(written: &str) -> Option<Base64> {
        let mut lines = written.split('\n').map(|line| line.trim_end_matches('\r'));
        let first = lines.next().filter(|line| !line.is_empty())?.len();
        let rest: Vec<usize> = lines.map(str::len).collect();
        let even = rest.iter().rev().skip(1).all(|len| *len == first);
        let fits = rest.last().is_none_or(|last| *last <= first && *last > 0);
        (even && fits).then_some(())?;
        let alphabet = if written.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
        let chars = written.bytes().filter(|byte| !byte.is_ascii_whitespace()).count();
        Some(Base64 { alphabet, padded: chars % 4 == 0, width: (!rest.is_empty()).then_some(first) })
    }

    fn engine(&self) -> GeneralPurpose {
        let config = GeneralPurposeConfig::new()
            .with_encode_padding(self.padded)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(self.alphabet, config)
    }

    fn decode(&self, written: &str) -> Option<Vec<u8>> {
        let packed: String = written.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        self.engine().decode(packed).ok()
    }

    fn encode(&self, bytes: &[u8]) -> String {
        let text = self.engine().encode(bytes);
        let Some(width) = self.width else { return text };
        let lines = text.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn unzip(bytes: &[u8], limits: &Limits) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let most = limits.unpacked_bytes;
    MultiGzDecoder::new(bytes).take(most + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= most).then_some(text)
}
