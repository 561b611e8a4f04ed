//! The words of a text: runs of bytes that may be in references, and where in a word a reference
//! begins and ends.

use crate::notation::pin;
use std::ops::Range;

/// Schemes that may precede a reference.
pub(crate) const SCHEMES: [&str; 4] = ["docker", "oci", "docker-image", "container"];

/// Operators between the name of a shell variable and its default.
const OPERATORS: [&str; 3] = [":-", ":=", "-"];

/// Iterates over the runs of bytes that may be in references.
pub(super) struct WordIter<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

impl Iterator for WordIter<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let start = self.at + bytes[self.at..].iter().position(|byte| is_inner(*byte))?;
        let len = bytes[start..]
            .iter()
            .position(|byte| !is_inner(*byte))
            .unwrap_or(bytes.len() - start);
        self.at = start + len;
        Some(start..self.at)
    }
}

/// Whether references may contain `byte`.
fn is_inner(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte)
}

/// A word without the scheme or variable that may precede a reference in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReferenceWord {
    /// The bytes of the word.
    pub(super) span: Range<usize>,
    /// The offset of the placeholder `${IMAGE:-…}`, if the word is its default.
    pub(super) placeholder: Option<usize>,
}

impl ReferenceWord {
    /// The word at `span` of `text`, without a scheme, and without the name and operator of a shell
    /// variable.
    pub(super) fn of(text: &str, mut span: Range<usize>) -> ReferenceWord {
        let mut placeholder = None;
        if text[..span.start].ends_with("${") {
            let operators = OPERATORS.iter();
            let ends =
                operators.filter_map(|sign| Some(text[span.clone()].find(sign)? + sign.len()));
            if let Some(len) = ends.min() {
                placeholder = Some(span.start - "${".len());
                span.start += len;
            }
        }
        let scheme = text[span.clone()]
            .split_once("://")
            .map(|(scheme, _)| scheme);
        span.start += scheme
            .filter(|scheme| SCHEMES.contains(scheme))
            .map_or(0, |scheme| scheme.len() + 3);
        ReferenceWord { span, placeholder }
    }
}

/// Whether a reference may begin after `before`.
pub(super) fn begins(before: &str) -> bool {
    let Some(last) = before.chars().next_back() else {
        return true;
    };
    match last {
        // the operator of a shell variable's default
        '-' | '=' => true,
        // a scheme
        '/' => before.ends_with("://"),
        _ => {
            last.is_whitespace()
                || "\"'`([,;|&<>\u{feff}{".contains(last) && !before.ends_with("\\{")
        }
    }
}

/// The end of a word that begins like a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordEnd {
    /// It is a reference up to this offset.
    At(usize),
    /// A placeholder follows, which completes the reference.
    Placeholder,
    /// It is a pattern, or a part of a longer word.
    Pattern,
    /// It is the key of a mapping.
    Key,
}

/// The end of the word at `span` of `text`.
pub(super) fn end(text: &str, span: &Range<usize>) -> WordEnd {
    let word = &text[span.clone()];
    let before = &text[..span.start];
    let after = &text[span.end..];
    let mut rest = after.chars();
    let next = rest.next();
    let then = rest.next();
    match next {
        Some('{' | '%' | '<') => return WordEnd::Placeholder,
        Some('$')
            if then.is_some_and(|then| then.is_ascii_alphanumeric() || "_{(".contains(then)) =>
        {
            return WordEnd::Placeholder;
        }
        Some('$' | '*' | '(' | '[' | '+' | '?' | '^') => return WordEnd::Pattern,
        Some('\\') if !ends(after) => return WordEnd::Pattern,
        _ => {}
    }
    if word.ends_with([':', '@']) {
        match next {
            Some(next) if next.is_whitespace() && begins_entry(before, &['{', '\n']) => {
                return WordEnd::Key;
            }
            // a colon in a sentence
            Some(' ' | '\t' | ',' | ';' | '|' | '&' | '>') => {}
            _ => return WordEnd::Placeholder,
        }
    }
    // punctuation at the end belongs to the sentence
    let len = word
        .trim_end_matches(['.', '-', '_'])
        .trim_end_matches(':')
        .len();
    let word = &word[..len];
    let after = &text[span.start + len..];
    if let Some(end) = quoted(before, word, after) {
        return end;
    }
    let has_alternative =
        |beside: &str| !beside.is_empty() && (pin(word).is_empty() || !beside.contains('/'));
    let right = after
        .strip_prefix('|')
        .and_then(|side| side.split(is_outer).next());
    let left = before
        .strip_suffix('|')
        .and_then(|side| side.rsplit(is_outer).next());
    if [left, right].into_iter().flatten().any(has_alternative) || !ends(after) {
        return WordEnd::Pattern;
    }
    WordEnd::At(span.start + len)
}

fn is_outer(c: char) -> bool {
    !u8::try_from(c).is_ok_and(is_inner)
}

/// The end of `word` if a closing quote or bracket and then a colon or `@` follow: `"name": …`,
/// `"name":$TAG`.
fn quoted(before: &str, word: &str, after: &str) -> Option<WordEnd> {
    let escaped = after
        .strip_prefix('\\')
        .filter(|rest| rest.starts_with(['"', '\'']));
    let mut rest = escaped.unwrap_or(after).chars();
    let close = rest.next().filter(|close| "\"'`})]".contains(*close))?;
    let sign = rest.next().filter(|sign| matches!(sign, ':' | '@'))?;
    let following = rest.next().filter(|next| !next.is_whitespace());
    let opening = before
        .strip_suffix(['"', '\''])
        .filter(|_| matches!(close, '"' | '\'') && sign == ':');
    let is_key = opening.is_some_and(|before| {
        begins_entry(
            before.strip_suffix('\\').unwrap_or(before),
            &['{', '\n', ','],
        )
    });
    match following {
        Some(next) if is_key && (!pin(word).is_empty() || "\"'{[\\".contains(next)) => {
            Some(WordEnd::Key)
        }
        None if is_key => Some(WordEnd::Key),
        Some(next)
            if next.is_ascii_alphanumeric() || "_${%<\"'(*[".contains(next) || sign == '@' =>
        {
            Some(WordEnd::Placeholder)
        }
        _ => None,
    }
}

/// Whether an entry of a mapping may begin after `before`: at the beginning, or after one of
/// `signs`.
fn begins_entry(before: &str, signs: &[char]) -> bool {
    let before = before.trim_end_matches([' ', '\t', '-', '?', '\u{feff}']);
    before.is_empty() || before.ends_with(signs)
}

/// Whether a reference may end before `after`.
fn ends(after: &str) -> bool {
    let mut rest = after.chars();
    let Some(next) = rest.next() else { return true };
    let then = rest.next();
    let is_joined =
        then.is_some_and(|then| then.is_ascii_alphanumeric() || "./:@-_${".contains(then));
    match next {
        '\\' => matches!(
            then,
            Some('"' | '\'' | 'n' | 'r' | 't' | '\\' | '\n' | '\r')
        ),
        // in `"name"tag`, the reference continues after the quote
        '"' | '\'' | '`' | '}' | ')' | ']' => {
            !is_joined
                || (matches!(then, Some(':' | '.'))
                    && !rest.next().is_some_and(|next| next.is_ascii_alphanumeric()))
        }
        '.' | ':' | '-' | '_' => !is_joined,
        _ => next.is_whitespace() || ",;|&<>".contains(next),
    }
}
