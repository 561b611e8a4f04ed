//! The text engine: references as exact words of any text, where no structure can be read. A reference counts
//! if nothing that could belong to it stands before or after it.

use super::findings::{Finding, Meaning, Splice};
use super::known::{Position, Verdict};
use super::pin;
use super::scan::{Engine, Lines};
use super::url;
use crate::model::{ImageRef, names_host};
use std::ops::Range;

/// Schemes that stand before a reference.
const SCHEMES: [&str; 4] = ["docker", "oci", "docker-image", "container"];

/// Every reference in `text`.
pub(super) fn scan(engine: &Engine<'_>, text: &str, lines: Lines) -> Vec<Finding> {
    let mut found = Vec::new();
    let comments = match lines {
        Lines::Many if !engine.options.comments => comments(text),
        _ => Vec::new(),
    };
    let mut words = Words { text, at: 0 };
    let mut comment = comments.iter().peekable();
    while let Some(word) = words.next() {
        while comment.next_if(|comment| comment.end <= word.start).is_some() {}
        if comment.peek().is_some_and(|comment| comment.start <= word.start) {
            continue;
        }
        if let Some(url) = url::at(text, &word) {
            words.at = words.at.max(url.end);
            found.extend(url::decide(engine, text, &url));
            continue;
        }
        found.extend(decide(engine, text, inner(text, word)));
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
fn decide(engine: &Engine<'_>, text: &str, span: Range<usize>) -> Option<Finding> {
    let word = &text[span.clone()];
    let (before, after) = (&text[..span.start], &text[span.end..]);
    if word.starts_with('/') && before.ends_with(['}', ')']) {
        return headless(engine, word, &span);
    }
    if !begins(before) {
        return None;
    }
    if after.starts_with(['$', '{', '%', '<']) {
        return placeholder(engine, text, &span);
    }
    if !ends(after) || word.is_empty() {
        return None;
    }
    let mut position = Position::Text;
    // in a template no tag beside it can be seen
    let key = || key(before);
    let verdict = engine.known.lookup(word, position, engine.options.pin);
    let finding = |meaning| Finding::new(span.start, word, position, meaning);
    match verdict {
        Verdict::Unknown if engine.all && looks_like_one(word) => {
            position = if key().is_some_and(is_image_key) { Position::Image } else { Position::Text };
            Some(Finding::new(span.start, word, position, Meaning::Unknown))
        }
        Verdict::Unknown => None,
        Verdict::Settled(item) => Some(finding(Meaning::Settled { item })),
        Verdict::Left(why) => Some(finding(Meaning::Left { why })),
        Verdict::Known(_) if pin(word).is_empty() && key().is_some_and(has_tag_beside) => {
            let why = "the text is no YAML by itself, so the tag that belongs to it cannot be seen";
            Some(finding(Meaning::Left { why: why.into() }))
        }
        Verdict::Known(meant) => {
            let new = super::written(word, &meant);
            let meaning = Meaning::Known { item: meant.item, to: new.clone(), reaches: vec![] };
            Some(Finding { splices: vec![Splice { span: span.clone(), bytes: new }], ..finding(meaning) })
        }
    }
}

/// `repository:${TAG}`: known repositories whose tag is put in later.
fn placeholder(engine: &Engine<'_>, text: &str, span: &Range<usize>) -> Option<Finding> {
    let word = &text[span.clone()];
    let name = word.trim_end_matches([':', '@']);
    let name = match name.rsplit_once(':') {
        Some((start, end)) if !end.contains('/') && start.contains('/') => start,
        _ => name,
    };
    let position =
        if key(&text[..span.start]).is_some_and(is_image_key) { Position::Image } else { Position::Text };
    let whole = text[span.start..].split(['\n', '"', '\'', '`']).next().unwrap_or(word).trim_end();
    if word.len() == name.len() {
        return None;
    }
    let tags = engine.known.tags(name, position)?;
    let why = format!("its tag or digest is put in later; the lock has {tags}");
    Some(Finding::new(span.start, whole, position, Meaning::Left { why }))
}

/// `{{ registry }}/repository:tag`: a locked repository whose host is put in later.
fn headless(engine: &Engine<'_>, word: &str, span: &Range<usize>) -> Option<Finding> {
    let path = word.trim_start_matches('/').trim_end_matches([':', '.']);
    let name = &path[..path.len() - pin(path).len()];
    let full = engine.known.by_path(name)?;
    let why = format!("its host is put in before it; the lock has {full}");
    Some(Finding::new(span.start, word, Position::Text, Meaning::Left { why }))
}

/// The key that a value after `before` has on its line: `image` in `  - image: "`, `FROM` has none.
fn key(before: &str) -> Option<&str> {
    let line = before.rsplit('\n').next()?;
    let line = line.trim_end_matches(['"', '\'', ' ', '\t']);
    let key = line.strip_suffix([':', '='])?.trim_end_matches(['"', '\'', ' ']);
    key.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
        .next()
        .filter(|key| !key.is_empty())
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

/// The comments of a text, as most languages that stand in for YAML have them: `#` at the beginning of a line or
/// after white space and outside of quotes, `;` and `//` at the beginning, `{{/* */}}`.
fn comments(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = line.len() - line.trim_start().len();
        let body = &line[start..];
        // BuildKit reads its frontend's image from such a line
        let directive = body.starts_with("# syntax=") || body.starts_with("#syntax=");
        let whole = body.starts_with(['#', ';']) || body.starts_with("//");
        let from = match whole {
            true => Some(start).filter(|_| !directive),
            false => hash(line),
        };
        found.extend(from.map(|from| at + from..at + line.len()));
        at += line.len();
    }
    for (start, _) in
        text.match_indices("/*").filter(|(at, _)| text[..*at].trim_end_matches(['-', ' ']).ends_with("{{"))
    {
        let end = text[start..].find("*/").map_or(text.len(), |len| start + len);
        found.push(start..end);
    }
    found.sort_by_key(|range| range.start);
    found
}

/// What may be the value of a Secret in a text that cannot be read: all that follows a key, in the documents that
/// say they are one.
pub(super) fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for document in text.split_inclusive("\n---") {
        let is_secret = document.lines().any(|line| {
            let said: String = line.chars().filter(|c| !c.is_whitespace() && !"\"',".contains(*c)).collect();
            said == "kind:Secret"
        });
        let mut start = at;
        for line in document.split_inclusive('\n').filter(|_| is_secret) {
            let body = line.trim_end_matches(['\n', '\r']);
            let indent = body.len() - body.trim_start().len();
            let from = body.find(": ").map_or(indent, |colon| colon + 2);
            if !body.trim_start().starts_with("{{") && from < body.len() {
                found.push(start + from..start + body.len());
            }
            start += line.len();
        }
        at += document.len();
    }
    found
}

/// Where a comment begins in the middle of a line.
fn hash(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open && before != '\\' => quote = None,
            _ => {}
        }
        before = c;
    }
    None
}
