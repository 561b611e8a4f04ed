//! Joins the lines of double-quoted values. In YAML, a backslash at the end of a line joins the
//! line with the text of the next one (YAML 1.2.2, 7.3.1), so a reference can have several lines.

use crate::occurrence::Occurrence;
use std::ops::Range;

/// A text without the escaped line breaks in its double quotes.
pub(crate) struct JoinedText {
    text: String,
    /// For each line break that was removed, its offset in `text`, and the offset in the original
    /// text of what follows it.
    cuts: Vec<(usize, usize)>,
}

impl JoinedText {
    /// Joins the lines of `text`. `None` if it has no such line breaks.
    pub(crate) fn of(text: &str) -> Option<JoinedText> {
        let breaks = escaped_breaks(text);
        if breaks.is_empty() {
            return None;
        }
        let mut joined = JoinedText {
            text: String::with_capacity(text.len()),
            cuts: Vec::with_capacity(breaks.len()),
        };
        let mut done = 0;
        for span in breaks {
            joined.text.push_str(&text[done..span.start]);
            joined.cuts.push((joined.text.len(), span.end));
            done = span.end;
        }
        joined.text.push_str(&text[done..]);
        Some(joined)
    }

    /// The joined text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The offset in the original text of the byte `at` of the joined text.
    pub(crate) fn offset(&self, at: usize) -> usize {
        let after = self.cuts.partition_point(|(cut, _)| *cut <= at);
        let cut = after.checked_sub(1).map(|last| self.cuts[last]);
        cut.map_or(at, |(cut, original)| original + (at - cut))
    }

    /// Whether a line break was removed from the part `span` of the joined text.
    fn has_cut_in(&self, span: &Range<usize>) -> bool {
        let next = self.cuts.partition_point(|(cut, _)| *cut <= span.start);
        self.cuts.get(next).is_some_and(|(cut, _)| *cut < span.end)
    }

    /// The occurrence in the original text. A reference that has several lines there is not
    /// changed.
    pub(super) fn restored(&self, mut occurrence: Occurrence) -> Occurrence {
        let edits = &occurrence.edits;
        if edits.iter().any(|edit| self.has_cut_in(&edit.span)) {
            occurrence.leave("it is written over several lines");
        }
        for edit in &mut occurrence.edits {
            let start = self.offset(edit.span.start);
            edit.span = start..start + edit.span.len();
        }
        occurrence.at = self.offset(occurrence.at);
        occurrence
    }
}

/// The escaped line breaks in the double quotes of `text`, each from its backslash to the text of
/// the next line.
fn escaped_breaks(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !text.contains("\\\n") && !text.contains("\\\r\n") {
        return found;
    }
    let mut quote = None;
    let mut next = 0;
    for line in text.split_inclusive('\n') {
        let at = next;
        next += line.len();
        let body = line.trim_end_matches(['\r', '\n']);
        let content = body.trim_end_matches('\\');
        // of two backslashes, the first one escapes the other
        let is_escaped = (body.len() - content.len()) % 2 == 1;
        if !is_escaped {
            quote = None;
            continue;
        }
        quote = open_quote(content, quote);
        let rest = text[next..].trim_start_matches([' ', '\t']);
        let is_indented = rest.len() < text.len() - next;
        // in a shell, the indentation of the next line separates words
        let is_joined = match quote {
            Some(OpenQuote::Yaml) => true,
            Some(OpenQuote::Other) => !is_indented,
            None => false,
        };
        if is_joined && !rest.starts_with(['\r', '\n']) {
            found.push(at + body.len() - 1..text.len() - rest.len());
        }
    }
    found
}

/// What an open double quote begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenQuote {
    /// A scalar of YAML.
    Yaml,
    /// Another value, as in a shell.
    Other,
}

/// The double quote that is open at the end of `line`. `open` is the one before the line.
fn open_quote(line: &str, mut open: Option<OpenQuote>) -> Option<OpenQuote> {
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if open.is_some() => open = None,
            '"' => {
                let before = line[..at].trim_end();
                let is_yaml = before.is_empty() || before.ends_with([':', '-', ',', '[', '{']);
                open = Some(if is_yaml {
                    OpenQuote::Yaml
                } else {
                    OpenQuote::Other
                });
            }
            _ => {}
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::JoinedText;

    #[test]
    fn lines_are_joined_in_double_quotes_only() {
        for (text, expected) in [
            ("a: \"x\\\n  y\"\n", "a: \"xy\"\n"),
            ("- \"x\\\r\n\ty\\\r\nz\"", "- \"xyz\""),
            ("a: {b: \"c\", d: \"x\\\n  y\"}", "a: {b: \"c\", d: \"xy\"}"),
            ("A=\"x\\\ny\"", "A=\"xy\""),
        ] {
            let joined = JoinedText::of(text).unwrap();
            assert_eq!(joined.text(), expected);
            for (at, c) in expected.char_indices() {
                assert!(text[joined.offset(at)..].starts_with(c), "{text}: {at}");
            }
        }
        for text in [
            "A=\"x\\\n  y\"",
            "a: \"x\\\\\n  y\"",
            "a: \"x\\\n\n  y\"",
            "a: 'x\\\n  y'",
            "a: \"x\" b \\\n  y",
            "a: \"\\\"x\" b\\\n  y",
            "FROM x\\\ny",
        ] {
            assert!(JoinedText::of(text).is_none(), "{text}");
        }
    }
}
