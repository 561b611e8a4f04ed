//! References as exact words of a text that has no readable structure. A word counts if nothing that could belong
//! to a reference stands before or after it.

use super::comments::comments;
use super::placeholder::reference_at;
use super::url;
use crate::model::{ImageRef, names_host};
use crate::rewrite::edit::Edit;
use crate::rewrite::index::Lookup;
use crate::rewrite::notation::{pin, replaced};
use crate::rewrite::occurrence::{Meaning, Occurrence};
use crate::rewrite::role::Role;
use crate::rewrite::settings::Settings;
use std::ops::Range;

/// Schemes that stand before a reference.
pub(in crate::rewrite) const SCHEMES: [&str; 4] = ["docker", "oci", "docker-image", "container"];

/// How far before a literal the beginning of its call is looked for, in bytes.
const CALL_BYTES: usize = 512;

/// Whether a text has lines, in which comments may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rewrite) enum Lines {
    /// A text of its own.
    Many,
    /// A word or sentence.
    One,
}

/// Every reference in `text`.
pub(in crate::rewrite) fn scan(settings: &Settings<'_>, text: &str, lines: Lines) -> Vec<Occurrence> {
    let mut found = Vec::new();
    let comments = match lines {
        Lines::Many if !settings.options.comments => comments(text),
        _ => Vec::new(),
    };
    let mut words = Words { text, at: 0 };
    let mut comment = comments.iter().peekable();
    while let Some(word) = words.next() {
        while comment.next_if(|comment| comment.end <= word.start).is_some() {}
        if comment.peek().is_some_and(|comment| comment.start <= word.start) {
            continue;
        }
        if let Some(url) = url::at(text, &word, settings.limits.reference_bytes) {
            words.at = words.at.max(url.end);
            found.extend(url::decide(settings, text, &url));
            continue;
        }
        found.extend(decide(settings, text, inner(text, word)));
    }
    found
}

/// Bytes that references have.
fn is_inner(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte)
}

/// Runs of bytes that references have.
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let start = self.at + bytes[self.at..].iter().position(|byte| is_inner(*byte))?;
        let len = bytes[start..].iter().position(|byte| !is_inner(*byte)).unwrap_or(bytes.len() - start);
        self.at = start + len;
        Some(start..self.at)
    }
}

/// The word without what may stand around a reference: a scheme, the name and operator of a shell variable's
/// default, and a full stop.
fn inner(text: &str, word: Range<usize>) -> Range<usize> {
    let mut word = word;
    if text[..word.start].ends_with("${") {
        let operators = [":-", ":=", "-"];
        let at = operators
            .iter()
            .filter_map(|operator| Some(text[word.clone()].find(operator)? + operator.len()))
            .min();
        word.start += at.unwrap_or(0);
    }
    if let Some((scheme, _)) =
        text[word.clone()].split_once("://").filter(|(scheme, _)| SCHEMES.contains(scheme))
    {
        word.start += scheme.len() + 3;
    }
    let stop = text[word.clone()].trim_end_matches(['.', '-', '_']).len();
    // `name:` before a placeholder is told apart below
    if !text[word.end..].starts_with(['$', '{', '%', '<']) {
        word.end = word.start + stop;
        word.end = word.start + text[word.clone()].trim_end_matches(':').len();
    }
    word
}

/// Whether a reference may begin after `before`.
fn begins(before: &str) -> bool {
    let Some(last) = before.chars().next_back() else { return true };
    match last {
        // the operator of a shell variable's default
        '-' | '=' => true,
        // a scheme
        '/' => before.ends_with("://"),
        _ => last.is_whitespace() || "\"'`([,;|&<>\u{feff}{".contains(last) && !before.ends_with("\\{"),
    }
}

/// Whether a reference may end before `after`.
fn ends(after: &str) -> bool {
    let mut rest = after.chars();
    let Some(next) = rest.next() else { return true };
    let then = rest.next();
    let joined = |then: Option<char>| {
        then.is_some_and(|then| then.is_ascii_alphanumeric() || "./:@-_${".contains(then))
    };
    match next {
        '\\' => matches!(then, Some('"' | '\'' | 'n' | 'r' | 't' | '\\' | '\n' | '\r')),
        // `"name":tag` and `${X:-name}:tag` go on
        '"' | '\'' | '`' | '}' | ')' | ']' => {
            !joined(then)
                || (then == Some(':') && !rest.next().is_some_and(|byte| byte.is_ascii_alphanumeric()))
                || (then == Some('.') && !rest.next().is_some_and(|byte| byte.is_ascii_alphanumeric()))
        }
        '.' | ':' | '-' | '_' => !joined(then),
        _ => next.is_whitespace() || ",;|&<>".contains(next),
    }
}

/// What the word at `span` means.
fn decide(settings: &Settings<'_>, text: &str, span: Range<usize>) -> Option<Occurrence> {
    let word = &text[span.clone()];
    let (before, after) = (&text[..span.start], &text[span.end..]);
    if word.starts_with('/') && before.ends_with(['}', ')']) {
        return headless(settings, word, &span);
    }
    if !begins(before) {
        return None;
    }
    if after.starts_with(['$', '{', '%', '<']) {
        return placeholder(settings, text, &span);
    }
    if !ends(after) || word.is_empty() {
        return None;
    }
    let mut role = Role::Text;
    // in a template no tag beside it can be seen
    let key = || key(before);
    let verdict = settings.index.lookup(word, role, settings.options.pin);
    let occurrence = |meaning| Occurrence::new(span.start, word, role, meaning);
    match verdict {
        Lookup::Unknown if settings.report_unknown && looks_like_one(word) => {
            role = match (key().is_some_and(is_image_key), is_in_call(before)) {
                (true, _) => Role::Image,
                (false, true) => Role::Literal,
                (false, false) => Role::Text,
            };
            Some(Occurrence::new(span.start, word, role, Meaning::Unknown))
        }
        Lookup::Unknown => None,
        Lookup::Settled(item) => Some(occurrence(Meaning::Settled { item })),
        Lookup::Left(why) => Some(occurrence(Meaning::Left { why })),
        Lookup::Known(_) if pin(word).is_empty() && key().is_some_and(has_tag_beside) => {
            let why = "the text is no YAML by itself, so the tag that belongs to it cannot be seen";
            Some(occurrence(Meaning::Left { why: why.into() }))
        }
        Lookup::Known(replacement) => {
            let new = replaced(word, &replacement);
            let meaning = Meaning::Known { item: replacement.item, to: new.clone(), reaches: vec![] };
            Some(Occurrence { edits: vec![Edit { span: span.clone(), bytes: new }], ..occurrence(meaning) })
        }
    }
}

/// `repository:${TAG}`: known repositories whose tag is put in later.
fn placeholder(settings: &Settings<'_>, text: &str, span: &Range<usize>) -> Option<Occurrence> {
    let word = &text[span.clone()];
    let name = word.trim_end_matches([':', '@']);
    let name = match name.rsplit_once(':') {
        Some((start, end)) if !end.contains('/') && start.contains('/') => start,
        _ => name,
    };
    let role = if key(&text[..span.start]).is_some_and(is_image_key) { Role::Image } else { Role::Text };
    if word.len() == name.len() {
        return None;
    }
    let tags = settings.index.tags(name, role)?;
    let why = format!("its tag or digest is put in later; the lock has {tags}");
    let written = reference_at(&text[span.start..], settings.limits.reference_bytes);
    Some(Occurrence::new(span.start, written, role, Meaning::Left { why }))
}

/// `{{ registry }}/repository:tag`: a locked repository whose host is put in later.
fn headless(settings: &Settings<'_>, word: &str, span: &Range<usize>) -> Option<Occurrence> {
    let path = word.trim_start_matches('/').trim_end_matches([':', '.']);
    let name = &path[..path.len() - pin(path).len()];
    let full = settings.index.by_path(name)?;
    let why = format!("its host is put in before it; the lock has {full}");
    Some(Occurrence::new(span.start, word, Role::Text, Meaning::Left { why }))
}

/// The key that a value after `before` has on its line: `image` in `  - image: "`, `FROM` has none.
fn key(before: &str) -> Option<&str> {
    let before = before.trim_end_matches(['"', '\'', ' ', '\t']);
    let key = before.strip_suffix([':', '='])?.trim_end_matches(['"', '\'', ' ']);
    key.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
        .next()
        .filter(|key| !key.is_empty())
}

/// Whether what follows `before` is a literal in the call of a template: `{{ image "`.
fn is_in_call(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(CALL_BYTES))..];
    near.ends_with(['"', '\'', '`']) && near.rfind("{{").is_some_and(|open| !near[open..].contains("}}"))
}

fn is_image_key(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with("image")
}

/// Whether the tag of what this key names may stand under another key.
fn has_tag_beside(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    // dockerRepository's tag is the version of what reads it
    key != "dockerrepository" && ["image", "repository", "repo", "name"].iter().any(|end| key.ends_with(end))
}

/// Whether a word that the lock does not know is a reference as surely as can be told: it has a host and a
/// tag or digest.
fn looks_like_one(word: &str) -> bool {
    let reference = || word.parse::<ImageRef>().is_ok_and(|reference| reference.is_pinned());
    word.contains('/') && names_host(word) && reference()
}
