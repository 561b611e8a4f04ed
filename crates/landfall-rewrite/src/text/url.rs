//! URLs in texts: whole ones, and those whose end is put in later (`https://dl.k8s.io/$VERSION/…`).

use super::placeholder::placeholder;
use crate::edit::Edit;
use crate::index::{UrlLookup, UrlPattern};
use crate::occurrence::{Meaning, Occurrence};
use crate::role::Role;
use crate::settings::Settings;
use std::ops::Range;

/// A URL in a text.
pub(super) struct Url<'t> {
    /// Where it begins.
    start: usize,
    /// Where it ends, its placeholders included.
    pub(super) end: usize,
    pattern: UrlPattern<'t>,
}

/// The URL that `word` of `text` is the beginning of, if it is one that files come from. Each of
/// its placeholders has `most` bytes at most.
pub(super) fn at<'t>(text: &'t str, word: &Range<usize>, most: usize) -> Option<Url<'t>> {
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
    let (mut from, mut at) = (start, start);
    loop {
        let len = text[at..].find(stops).unwrap_or(text.len() - at);
        at += len;
        let Some(len) = placeholder(&text[at..], most) else {
            break;
        };
        parts.push(&text[from..at]);
        at += len;
        from = at;
    }
    // what ends a sentence or a command is not the URL's
    let last = text[from..at].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '&', ']', '*']);
    parts.push(last);
    let end = from + last.len();
    let mut parts = parts.into_iter();
    Some(Url {
        start,
        end,
        pattern: UrlPattern {
            head: parts.next()?,
            rest: parts.collect(),
        },
    })
}

/// Characters that no URL has, and `$`, `{` and `%s` with which placeholders begin.
fn stops(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`<>\\|^{}$()".contains(c)
}

/// What the lock says to `url`.
pub(super) fn decide(settings: &Settings<'_>, text: &str, url: &Url<'_>) -> Option<Occurrence> {
    let written = &text[url.start..url.end];
    let occurrence = |meaning| Occurrence::new(url.start, written, Role::Url, meaning);
    match settings.index.lookup_url(&url.pattern) {
        UrlLookup::Unknown => {
            let reported = settings.report_unknown
                && (settings.index.has_host(url.pattern.head) || is_download(url));
            reported.then(|| occurrence(Meaning::Unknown))
        }
        UrlLookup::Settled(item) => Some(occurrence(Meaning::Settled { item })),
        UrlLookup::Left(why) => Some(occurrence(Meaning::Left { why })),
        UrlLookup::Known { item, to, reaches } => {
            let span = url.start..url.start + url.pattern.head.len();
            let rest = &text[span.end..url.end];
            let meaning = Meaning::Known {
                item,
                to: format!("{to}{rest}"),
                reaches,
            };
            Some(Occurrence {
                edits: vec![Edit { span, bytes: to }],
                ..occurrence(meaning)
            })
        }
    }
}

/// Endings of names that are fetched rather than looked at.
const ENDINGS: [&str; 16] = [
    ".tgz", ".gz", ".xz", ".zst", ".bz2", ".tar", ".zip", ".deb", ".rpm", ".sh", ".sha256",
    ".sha512", ".exe", ".bin", ".whl", ".asc",
];

fn is_download(url: &Url<'_>) -> bool {
    let last = url.pattern.rest.last().unwrap_or(&url.pattern.head);
    ENDINGS.iter().any(|ending| last.ends_with(ending))
}
