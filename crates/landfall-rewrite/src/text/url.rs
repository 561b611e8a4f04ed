//! Finds URLs in texts, with placeholders (`https://dl.k8s.io/$VERSION/…`) and without.

use super::git_source_url;
use super::placeholder::placeholder;
use crate::edit::SpanEdit;
use crate::index::{UrlLookup, UrlPattern};
use crate::occurrence::{Occurrence, ReferenceMeaning};
use crate::role::ReferenceRole;
use crate::settings::ScanSettings;
use std::ops::Range;

/// A URL in a text.
pub(super) struct UrlWord<'t> {
    /// The offset of its first byte.
    start: usize,
    /// The offset after its last byte, placeholders included.
    pub(super) end: usize,
    pattern: UrlPattern<'t>,
}

/// The http or https URL that begins in `word` of `text`. A placeholder has at most `max_bytes`
/// bytes.
pub(super) fn at<'t>(text: &'t str, word: &Range<usize>, max_bytes: usize) -> Option<UrlWord<'t>> {
    let written = &text[word.clone()];
    let scheme = written.find("://")?;
    let start = scheme
        - written[..scheme]
            .bytes()
            .rev()
            .take_while(u8::is_ascii_alphabetic)
            .count();
    let scheme = &written[start..scheme];
    ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        .then_some(())?;
    let start = word.start + start;
    let mut parts = Vec::new();
    let mut from = start;
    let mut at = start;
    loop {
        let len = text[at..].find(stops).unwrap_or(text.len() - at);
        at += len;
        let Some(len) = placeholder(&text[at..], max_bytes) else {
            break;
        };
        // the literal part before the placeholder; the next literal part begins after it
        parts.push(&text[from..at]);
        at += len;
        from = at;
    }
    // punctuation at the end belongs to the sentence or the command
    let last = text[from..at].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '&', ']', '*']);
    parts.push(last);
    let end = from + last.len();
    let mut parts = parts.into_iter();
    Some(UrlWord {
        start,
        end,
        pattern: UrlPattern {
            head: parts.next()?,
            rest: parts.collect(),
        },
    })
}

/// Whether a character ends the literal part of a URL: URLs do not contain it, or it begins a
/// placeholder.
fn stops(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`<>\\|^{}$()".contains(c)
}

/// The occurrence of `url`, by its state in the lock. `None` if it is not reported.
pub(super) fn decide(
    settings: &ScanSettings<'_>,
    text: &str,
    url: &UrlWord<'_>,
) -> Option<Occurrence> {
    let written = &text[url.start..url.end];
    let occurrence = |meaning| Occurrence::new(url.start, written, ReferenceRole::Url, meaning);
    let lookup = settings.index.lookup_url(&url.pattern);
    if matches!(lookup, UrlLookup::Unknown | UrlLookup::Settled(None)) {
        let head = url.start..url.start + url.pattern.head.len();
        if let Some(found) = git_source_url::in_url(settings, text, head) {
            return Some(found);
        }
    }
    match lookup {
        UrlLookup::Unknown => {
            let reported = settings.report_unknown
                && (settings.index.has_host(url.pattern.head) || is_download(url));
            reported.then(|| occurrence(ReferenceMeaning::Unknown))
        }
        UrlLookup::Settled(item) => Some(occurrence(ReferenceMeaning::Settled { item })),
        UrlLookup::Left(why) => Some(occurrence(ReferenceMeaning::Left { why })),
        UrlLookup::Known { item, to, reaches } => {
            let span = url.start..url.start + url.pattern.head.len();
            let rest = &text[span.end..url.end];
            let meaning = ReferenceMeaning::Known {
                item,
                to: format!("{to}{rest}"),
                reaches,
            };
            Some(Occurrence {
                edits: vec![SpanEdit { span, bytes: to }],
                ..occurrence(meaning)
            })
        }
    }
}

/// Endings of files that are downloaded, unlike web pages.
const ENDINGS: [&str; 16] = [
    ".tgz", ".gz", ".xz", ".zst", ".bz2", ".tar", ".zip", ".deb", ".rpm", ".sh", ".sha256",
    ".sha512", ".exe", ".bin", ".whl", ".asc",
];

fn is_download(url: &UrlWord<'_>) -> bool {
    let last = url.pattern.rest.last().unwrap_or(&url.pattern.head);
    ENDINGS.iter().any(|ending| last.ends_with(ending))
}
