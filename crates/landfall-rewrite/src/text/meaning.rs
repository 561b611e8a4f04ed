//! What a word of a text means, by what stands around it.

use super::key::{has_tag_beside, is_image_key, key};
use super::neighbours::has_registry_beside;
use super::placeholder::reference_at;
use super::places::Places;
use super::word::{End, Word, begins, end};
use crate::edit::Edit;
use crate::index::Lookup;
use crate::notation::{pin, replaced};
use crate::occurrence::{Meaning, Occurrence};
use crate::role::Role;
use crate::settings::Settings;
use landfall_model::{ImageRef, has_host};
use std::ops::Range;

/// How far before a literal the beginning of its call is looked for, in bytes.
const CALL_BYTES: usize = 512;

/// What `word` means. `role` is that of the text as a whole.
pub(super) fn decide(
    settings: &Settings<'_>,
    text: &str,
    word: &Word,
    role: Role,
    places: &Places,
) -> Option<Occurrence> {
    let Word { span, placeholder } = word;
    let before = &text[..span.start];
    if text[span.clone()].starts_with('/') && before.ends_with(['}', ')']) {
        return headless(settings, text, span);
    }
    let key = key(&text[..placeholder.unwrap_or(span.start)]);
    let role = match key {
        _ if places.is_image(placeholder.unwrap_or(span.start)) => Role::Container,
        Some(key) if is_image_key(key) => Role::Image,
        // of a text with more in it, one word need not be the image
        _ if placeholder.is_some() && role.is_image() => role,
        _ => Role::Text,
    };
    let is_pattern = before.ends_with(['^', '*', '~', '!']);
    match end(text, span) {
        _ if is_pattern => incomplete(settings, text, span, role, &End::Pattern),
        _ if !begins(before) => None,
        End::At(end) => whole(settings, text, span.start..end, role, key),
        end => incomplete(settings, text, span, role, &end),
    }
}

/// The meaning of the word at `span`, which is a reference as a whole. It stands under `key`.
fn whole(
    settings: &Settings<'_>,
    text: &str,
    span: Range<usize>,
    role: Role,
    key: Option<&str>,
) -> Option<Occurrence> {
    let word = &text[span.clone()];
    if word.is_empty() {
        return None;
    }
    let occurrence = |meaning| Occurrence::new(span.start, word, role, meaning);
    // in a template no tag beside it can be seen
    let untagged =
        pin(word).is_empty() && role != Role::Container && key.is_some_and(has_tag_beside);
    match settings.index.lookup(word, role, settings.options.pin) {
        Lookup::Unknown => {
            let role = if role == Role::Text && is_in_call(&text[..span.start]) {
                Role::Literal
            } else {
                role
            };
            let meaning = unknown(settings, word, role)?;
            Some(Occurrence::new(span.start, word, role, meaning))
        }
        Lookup::Settled(item) => Some(occurrence(Meaning::Settled { item })),
        Lookup::Known(_) | Lookup::Left(_) if untagged => Some(occurrence(Meaning::left(
            "the text is no YAML by itself, so the tag that belongs to it cannot be seen",
        ))),
        Lookup::Known(_) | Lookup::Left(_)
            if !has_host(word) && has_registry_beside(text, span.start) =>
        {
            let why = "a registry stands beside it, and the text is no YAML by itself";
            Some(occurrence(Meaning::left(why)))
        }
        Lookup::Left(why) => Some(occurrence(Meaning::Left { why })),
        Lookup::Known(replacement) => {
            let new = replaced(word, &replacement);
            let meaning = Meaning::Known {
                item: replacement.item,
                to: new.clone(),
                reaches: vec![],
            };
            Some(Occurrence {
                edits: vec![Edit {
                    span: span.clone(),
                    bytes: new,
                }],
                ..occurrence(meaning)
            })
        }
    }
}

/// Whether what follows `before` is a literal in the call of a template: `{{ image "`.
fn is_in_call(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(CALL_BYTES))..];
    near.ends_with(['"', '\'', '`'])
        && near
            .rfind("{{")
            .is_some_and(|open| !near[open..].contains("}}"))
}

/// The meaning of a word that the index does not know.
fn unknown(settings: &Settings<'_>, word: &str, role: Role) -> Option<Meaning> {
    let name = &word[..word.len() - pin(word).len()];
    if word.parse::<ImageRef>().is_err() && settings.index.tags(name, role).is_some() {
        return Some(Meaning::left("its tag or digest is none"));
    }
    (settings.report_unknown && looks_like_one(word)).then_some(Meaning::Unknown)
}

/// The meaning of the word at `span`, which is not all of a reference, or more than one:
/// `repository:${TAG}`.
fn incomplete(
    settings: &Settings<'_>,
    text: &str,
    span: &Range<usize>,
    role: Role,
    end: &End,
) -> Option<Occurrence> {
    let word = text[span.clone()].trim_end_matches([':', '@', '.']);
    let name = &word[..word.len() - pin(word).len()];
    let tags = settings.index.tags(name, role)?;
    let most = settings.limits.reference_bytes;
    let (written, why) = match end {
        End::Later => {
            let why = format!("its tag or digest is put in later; the lock has {tags}");
            (reference_at(&text[span.start..], most), why)
        }
        End::Pattern => {
            let why = format!("it is a pattern, or part of a longer word; the lock has {tags}");
            (reference_at(&text[span.start..], most), why)
        }
        End::Key | End::At(_) => (word, "it is the key of a mapping".to_owned()),
    };
    Some(Occurrence::new(
        span.start,
        written,
        role,
        Meaning::Left { why },
    ))
}

/// `{{ registry }}/repository:tag`: a locked repository whose host is put in later.
fn headless(settings: &Settings<'_>, text: &str, span: &Range<usize>) -> Option<Occurrence> {
    let path = text[span.clone()]
        .trim_start_matches('/')
        .trim_end_matches([':', '.']);
    let name = &path[..path.len() - pin(path).len()];
    let full = settings.index.by_path(name)?;
    let why = format!("its host is put in before it; the lock has {full}");
    let written = reference_at(&text[span.start..], settings.limits.reference_bytes);
    Some(Occurrence::new(
        span.start,
        written,
        Role::Text,
        Meaning::Left { why },
    ))
}

/// Whether a word that the lock does not know is a reference as surely as can be told: it has a
/// host and a tag or digest.
fn looks_like_one(word: &str) -> bool {
    let reference = || {
        word.parse::<ImageRef>()
            .is_ok_and(|reference| reference.is_pinned())
    };
    word.contains('/') && has_host(word) && reference()
}
