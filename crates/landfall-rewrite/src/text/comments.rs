//! Finds the comments of texts.

use super::dockerfile_instructions::directive;
use std::ops::Range;

/// The comments of a text, in the notation of most scripts, configuration files and templates: `;`
/// and `//` at the beginning of a line, `#` at the beginning of a line or after white space outside
/// of quotes, and `{{/* */}}`.
pub(super) fn comments(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    for line in text[at..].split_inclusive('\n') {
        let start = line.len() - line.trim_start().len();
        let body = &line[start..];
        // `# syntax=` is not a comment: it names the image of BuildKit's frontend
        let directive = directive(body.trim_end()).is_some_and(|(name, _)| name == "syntax");
        let whole = body.starts_with(['#', ';']) || body.starts_with("//");
        let from = if whole {
            Some(start).filter(|_| !directive)
        } else {
            comment_start(line)
        };
        found.extend(from.map(|from| at + from..at + line.len()));
        at += line.len();
    }
    let mut at = 0;
    while let Some(start) = text[at..].find("/*").map(|len| at + len) {
        at = start + 2;
        if text[..start].trim_end_matches(['-', ' ']).ends_with("{{") {
            at = text[at..].find("*/").map_or(text.len(), |len| at + len);
            found.push(start..at);
        }
    }
    found.sort_by_key(|range| range.start);
    found
}

/// The offset of a comment in the middle of a line.
fn comment_start(line: &str) -> Option<usize> {
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
