//! Finds URLs in texts, with placeholders (`https://dl.k8s.io/$VERSION/…`) and without.

use super::begins;
use super::variables::placeholder;
use crate::git_source::{GitSource, GitSourceForm};
use crate::index::UrlPattern;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::scan_result::ScanSettings;
use landfall_model::redact_urls;
use std::ops::Range;

/// A URL in a text.
pub(crate) struct UrlWord<'t> {
    /// The offset of its first byte.
    start: usize,
    /// The offset after its last byte, placeholders included.
    pub(crate) end: usize,
    /// The literal parts between the placeholders.
    pub(crate) pattern: UrlPattern<'t>,
}

/// The http or https URL that begins in `word` of `text`. A placeholder has at most `max_bytes`
/// bytes.
pub(crate) fn at<'t>(text: &'t str, word: &Range<usize>, max_bytes: usize) -> Option<UrlWord<'t>> {
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
    if matches!(
        lookup,
        ReferenceMeaning::Unknown | ReferenceMeaning::Settled(None)
    ) {
        let head = url.start..url.start + url.pattern.head.len();
        if let Some(found) = in_url(settings, text, head) {
            return Some(found);
        }
    }
    match lookup {
        ReferenceMeaning::Unknown => {
            if let Some(why) = folder_of_others(settings, text, url) {
                return Some(occurrence(ReferenceMeaning::left(why)));
            }
            let reported = settings.report_unknown
                && (settings.index.has_host(url.pattern.head) || is_download(url));
            reported.then(|| occurrence(ReferenceMeaning::Unknown))
        }
        ReferenceMeaning::Known { item, to, reaches } => {
            if let Some(why) = unlocked_value(settings, written, &url.pattern) {
                return Some(occurrence(ReferenceMeaning::left(why)));
            }
            let span = url.start..url.start + url.pattern.head.len();
            let rest = &text[span.end..url.end];
            let meaning = ReferenceMeaning::Known {
                item,
                to: format!("{to}{rest}"),
                reaches,
            };
            Some(occurrence(meaning).with_edit(span, to))
        }
        meaning => Some(occurrence(meaning)),
    }
}

/// The reason to leave a URL with placeholders: the variables of the text make it a URL that the
/// lock lacks.
fn unlocked_value(
    settings: &ScanSettings<'_>,
    written: &str,
    pattern: &UrlPattern<'_>,
) -> Option<String> {
    if pattern.rest.is_empty() {
        return None;
    }
    let value = settings.variables.filled(written)?;
    let lookup = settings.index.lookup_url(&UrlPattern {
        head: &value,
        rest: Vec::new(),
    });
    // a folder of locked files, or a URL at the file server, is not unknown
    (lookup == ReferenceMeaning::Unknown).then(|| {
        let value = redact_urls(&value);
        format!("with the variables of this file it is {value}, which the lock lacks")
    })
}

/// The reason to leave a URL that is assigned to a variable, if locked files are below it.
fn folder_of_others(
    settings: &ScanSettings<'_>,
    text: &str,
    url: &UrlWord<'_>,
) -> Option<&'static str> {
    let is_literal = url.pattern.rest.is_empty() && is_assigned(text, url.start);
    settings
        .index
        .folder_of(url.pattern.head)
        .filter(|_| is_literal)
}

/// Whether the URL at `start` of `text` is the value of a variable, or its default.
pub(crate) fn is_assigned(text: &str, start: usize) -> bool {
    let before = text[..start].trim_end_matches(['"', '\'']);
    before.ends_with('=') || before.ends_with(":-")
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

// Rewrites the repository in sources of Kustomize and Terraform, and keeps the folder and version.

/// The occurrence of a locked repository at the beginning of the URL at `span` of `text`. `None` if
/// nothing follows the repository: it is then a URL like any other.
pub(super) fn in_url(
    settings: &ScanSettings<'_>,
    text: &str,
    span: Range<usize>,
) -> Option<Occurrence> {
    let source = GitSource::parse(&text[span.clone()])?;
    let has_more = source.repository.end < span.len();
    has_more.then(|| occurrence(settings, text, span, &source))?
}

/// The occurrence of a locked repository in `github.com/…`, without a scheme, at `span` of `text`.
/// `None` if neither a folder nor a version follows: the text may then be anything.
pub(super) fn without_scheme(
    settings: &ScanSettings<'_>,
    text: &str,
    span: Range<usize>,
) -> Option<Occurrence> {
    // most words are something else
    if !text[span.clone()].starts_with("github.com/") {
        return None;
    }
    let source = GitSource::parse(&text[span.clone()])?;
    let is_source = source.repository.end < span.len() || text[span.end..].starts_with("?ref=");
    (is_source && begins(&text[..span.start])).then(|| occurrence(settings, text, span, &source))?
}

fn occurrence(
    settings: &ScanSettings<'_>,
    text: &str,
    span: Range<usize>,
    source: &GitSource<'_>,
) -> Option<Occurrence> {
    let edited = span.start + source.repository.start..span.start + source.repository.end;
    // documents may leave `.git` out
    for url in [source.url.clone(), format!("{}.git", source.url)] {
        let whole = UrlPattern {
            head: &url,
            rest: Vec::new(),
        };
        let new = |meaning| {
            let written = &text[span.clone()];
            Occurrence::new(span.start, written, ReferenceRole::Url, meaning)
        };
        match settings.index.lookup_url(&whole) {
            ReferenceMeaning::Known { item, to, .. } => {
                // without `git::`, Terraform would download an archive
                let scheme = match source.form {
                    GitSourceForm::GitHub => "git::",
                    _ => "",
                };
                let bytes = format!("{scheme}{to}");
                let to = format!("{bytes}{}", &text[edited.end..span.end]);
                let meaning = ReferenceMeaning::known(item, to);
                return Some(new(meaning).with_edit(edited, bytes));
            }
            ReferenceMeaning::Settled(None) | ReferenceMeaning::Unknown => {}
            meaning => return Some(new(meaning)),
        }
    }
    None
}
