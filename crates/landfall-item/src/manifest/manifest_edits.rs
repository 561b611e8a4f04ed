//! Edits versions and digests in the text of a manifest without touching any other byte.

use super::load::{FileOverrides, LoadManifestError};
use super::updatable_version::UpdatableVersion;
use landfall_model::Digest;
use landfall_model::document::{
    SourceLocation, SourceSpan, SourceText, YamlNode, read_text_input, yaml,
};
use serde_yaml::Value;
use std::ops::Range;
use std::path::Path;

pub(super) const NOT_PLAIN: &str =
    "it is written with escapes or repeated by an alias, so it cannot be edited in place";
pub(super) const NOT_YAML: &str = "the manifest is no longer valid YAML";

/// Replaces the version of `slot` in the manifest `text` by `new`.
///
/// # Errors
/// Why the version cannot be edited in place.
pub fn set_version(text: &str, slot: &UpdatableVersion, new: &str) -> Result<String, String> {
    let (mark, body) = split_byte_order_mark(text);
    let root = YamlNode::parse(body).ok_or(NOT_YAML)?;
    let span = slot.key.bytes(body, &root);
    // the last occurrence, since an anchor with the same name may precede the scalar
    let at = body[span.clone()].rfind(&slot.text).ok_or(NOT_PLAIN)? + span.start;
    let start = at + slot.version.start;
    let end = at + slot.version.end;
    let edited = [&body[..start], new, &body[end..]].concat();
    let expected = [
        &slot.text[..slot.version.start],
        new,
        &slot.text[slot.version.end..],
    ]
    .concat();
    // a new version may need quotes that the old one did not, so the edited manifest is parsed
    let document: Option<Value> = yaml::from_str(&edited).ok();
    match document.and_then(|document| slot.key.read(&document)) {
        Some(read) if read == expected => Ok([mark, &edited].concat()),
        _ => Err(format!(
            "`{new}` cannot be written there: YAML would read it as another value"
        )),
    }
}

/// Replaces the digest `old` by `new` in the entry at `at` of the manifest `text`.
///
/// # Errors
/// Why the digest cannot be replaced.
pub fn set_digest(
    text: &str,
    at: &SourceLocation,
    old: &Digest,
    new: &Digest,
) -> Result<String, String> {
    let (mark, body) = split_byte_order_mark(text);
    let root = YamlNode::parse(body).ok_or(NOT_YAML)?;
    let source = SourceText::yaml(at.file.clone(), body.to_owned());
    let entry = ["images", "charts"]
        .into_iter()
        .filter(|section| root.key_span(section).is_some())
        .flat_map(|section| {
            let section = root.get(section);
            (0..section.count()).map(|index| section.item(index))
        })
        .find(|entry| {
            // a request has the position of this key
            let key = match entry.key_span("repo") {
                Some(_) => "repo",
                None => "ref",
            };
            SourceSpan::new(&source, entry.get(key).span()).location() == *at
        })
        .ok_or("its entry is not in `images` or `charts`")?;
    // a reference may contain the digest, and `digest` may repeat it
    let nodes = [entry.get("ref").span()]
        .into_iter()
        .chain(entry.key_span("digest").map(|_| entry.get("digest").span()));
    let old = old.to_string();
    let mut starts: Vec<usize> = nodes
        .filter_map(|span| body[span.clone()].rfind(&old).map(|at| at + span.start))
        .collect();
    if starts.is_empty() {
        return Err(
            "its digest is in a variable or an alias, so it cannot be edited in place".into(),
        );
    }
    starts.sort_unstable();
    let mut edited = body.to_owned();
    // from the end, so that the offsets of earlier digests stay valid
    for start in starts.into_iter().rev() {
        edited.replace_range(start..start + old.len(), &new.to_string());
    }
    Ok([mark, &edited].concat())
}

/// Splits a text after its byte order mark, since offsets in the parsed text begin after it.
pub(super) fn split_byte_order_mark(text: &str) -> (&str, &str) {
    let body = text.trim_start_matches('\u{feff}');
    text.split_at(text.len() - body.len())
}

/// The line that contains the byte at `at`, with its line ending.
pub(super) fn line_of(body: &str, at: usize) -> Range<usize> {
    let start = body[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = body[at..].find('\n').map_or(body.len(), |end| at + end + 1);
    start..end
}

/// The text of the manifest at `path`, overridden or read from disk.
///
/// # Errors
/// If it cannot be read.
pub fn text_of(path: &Path, edited: &FileOverrides) -> Result<String, LoadManifestError> {
    match edited.get(path) {
        Some(text) => Ok(text.clone()),
        None => read_text_input(path).map_err(|source| LoadManifestError::open(path, source)),
    }
}
