//! Decides the meaning of a word of a text, by the text around it.

use super::line_key::{has_tag_beside, is_image_key, key};
use super::placeholder::reference_at;
use super::text_marks::TextMarks;
use super::word::{ReferenceWord, WordEnd, begins, end};
use crate::edit::SpanEdit;
use crate::index::ReferenceLookup;
use crate::notation::{pin, replaced};
use crate::occurrence::{Occurrence, ReferenceMeaning};
use crate::role::ReferenceRole;
use crate::settings::ScanSettings;
use landfall_model::{ImageRef, has_host};
use std::ops::Range;

/// The number of bytes that are searched before a literal for the beginning of its call. Without a
/// limit, a text of literals would take quadratic time.
const CALL_BYTES: usize = 512;

/// The meaning of `word`. `role` is the role of the whole text.
pub(super) fn decide(
    settings: &ScanSettings<'_>,
    text: &str,
    word: &ReferenceWord,
    role: ReferenceRole,
    marks: &mut TextMarks,
) -> Option<Occurrence> {
    let ReferenceWord { span, placeholder } = word;
    let before = &text[..span.start];
    if text[span.clone()].starts_with('/') && before.ends_with(['}', ')']) {
        return headless(settings, text, span);
    }
    let key = key(&text[..placeholder.unwrap_or(span.start)]);
    let role = match key {
        _ if marks.is_image(placeholder.unwrap_or(span.start)) => ReferenceRole::Container,
        Some(key) if is_image_key(key) => ReferenceRole::Image,
        // only the default of a placeholder has the role of the text: any other word need not be
        // the image
        _ if placeholder.is_some() && role.is_image() => role,
        _ => ReferenceRole::Text,
    };
    let is_pattern = before.ends_with(['^', '*', '~', '!']);
    match end(text, span) {
        _ if is_pattern => incomplete(settings, text, span, role, &WordEnd::Pattern),
        _ if !begins(before) => None,
        WordEnd::At(end) => whole(settings, text, span.start..end, role, key, marks),
        end => incomplete(settings, text, span, role, &end),
    }
}

/// The meaning of the word at `span`, which is a complete reference. `key` is its key on the line.
fn whole(
    settings: &ScanSettings<'_>,
    text: &str,
    span: Range<usize>,
    role: ReferenceRole,
    key: Option<&str>,
    marks: &mut TextMarks,
) -> Option<Occurrence> {
    let word = &text[span.clone()];
    if word.is_empty() {
        return None;
    }
    let occurrence = |meaning| Occurrence::new(span.start, word, role, meaning);
    // in a template, the tag may be the value of another key
    let untagged =
        pin(word).is_empty() && role != ReferenceRole::Container && key.is_some_and(has_tag_beside);
    match settings.index.lookup(word, role, settings.options.pin) {
        ReferenceLookup::Unknown => {
            let role = if role == ReferenceRole::Text && is_in_call(&text[..span.start]) {
                ReferenceRole::Literal
            } else {
                role
            };
            let meaning = unknown(settings, word, role)?;
            Some(Occurrence::new(span.start, word, role, meaning))
        }
        ReferenceLookup::Settled(item) => Some(occurrence(ReferenceMeaning::Settled { item })),
        ReferenceLookup::Known(_) | ReferenceLookup::Left(_) if untagged => {
            Some(occurrence(ReferenceMeaning::left(
                "the text is not YAML, so its tag may be the value of another key",
            )))
        }
        ReferenceLookup::Known(_) | ReferenceLookup::Left(_)
            if !has_host(word) && marks.has_registry_beside(text, span.start) =>
        {
            let why = "it has a registry on another line, and the text is not YAML";
            Some(occurrence(ReferenceMeaning::left(why)))
        }
        ReferenceLookup::Left(why) => Some(occurrence(ReferenceMeaning::Left { why })),
        ReferenceLookup::Known(replacement) => {
            let new = replaced(word, &replacement);
            let meaning = ReferenceMeaning::Known {
                item: replacement.item,
                to: new.clone(),
                reaches: vec![],
            };
            Some(Occurrence {
                edits: vec![SpanEdit {
                    span: span.clone(),
                    bytes: new,
                }],
                ..occurrence(meaning)
            })
        }
    }
}

/// Whether `before` ends in an opening quote within a template call: `{{ image "`.
fn is_in_call(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(CALL_BYTES))..];
    near.ends_with(['"', '\'', '`'])
        && near
            .rfind("{{")
            .is_some_and(|open| !near[open..].contains("}}"))
}

/// The meaning of a word that the index does not know.
fn unknown(
    settings: &ScanSettings<'_>,
    word: &str,
    role: ReferenceRole,
) -> Option<ReferenceMeaning> {
    let name = &word[..word.len() - pin(word).len()];
    if word.parse::<ImageRef>().is_err() && settings.index.tags(name, role).is_some() {
        return Some(ReferenceMeaning::left("its tag or digest is not valid"));
    }
    (settings.report_unknown && looks_like_reference(word)).then_some(ReferenceMeaning::Unknown)
}

/// The meaning of the word at `span`, which is a pattern, a mapping key, or only a part of a
/// reference: `repository:${TAG}`.
fn incomplete(
    settings: &ScanSettings<'_>,
    text: &str,
    span: &Range<usize>,
    role: ReferenceRole,
    end: &WordEnd,
) -> Option<Occurrence> {
    let word = text[span.clone()].trim_end_matches([':', '@', '.']);
    let name = &word[..word.len() - pin(word).len()];
    let tags = settings.index.tags(name, role)?;
    let max_bytes = settings.limits.reference_bytes;
    let (written, why) = match end {
        WordEnd::Placeholder => {
            let why = format!("its tag or digest is a placeholder; the lock has {tags}");
            (reference_at(&text[span.start..], max_bytes), why)
        }
        WordEnd::Pattern => {
            let why = format!("it is a pattern, or part of a longer word; the lock has {tags}");
            (reference_at(&text[span.start..], max_bytes), why)
        }
        WordEnd::Key | WordEnd::At(_) => (word, "it is the key of a mapping".to_owned()),
    };
    Some(Occurrence::new(
        span.start,
        written,
        role,
        ReferenceMeaning::Left { why },
    ))
}

/// The meaning of the path in `{{ registry }}/repository:tag`: a locked repository whose host is a
/// placeholder.
fn headless(settings: &ScanSettings<'_>, text: &str, span: &Range<usize>) -> Option<Occurrence> {
    let path = text[span.clone()]
        .trim_start_matches('/')
        .trim_end_matches([':', '.']);
    let name = &path[..path.len() - pin(path).len()];
    let full = settings.index.by_path(name)?;
    let why = format!("its host is a placeholder; the lock has {full}");
    let written = reference_at(&text[span.start..], settings.limits.reference_bytes);
    Some(Occurrence::new(
        span.start,
        written,
        ReferenceRole::Text,
        ReferenceMeaning::Left { why },
    ))
}

/// Whether a word that the lock does not contain is almost certainly a reference: it has a host and
/// a tag or digest.
fn looks_like_reference(word: &str) -> bool {
    word.contains('/')
        && has_host(word)
        && word
            .parse::<ImageRef>()
            .is_ok_and(|reference| reference.is_pinned())
}
