//! Errors in input files, displayed with their position, the line and the fix.

use super::source_text::LineIndex;
use crate::Failure;
use crate::redaction::UserinfoSearch;
use crate::report::one_line;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// The maximum number of errors that are reported for one document. Each error contains the whole
/// text of the document.
pub(super) const MAX_DIAGNOSTICS: usize = 20;

/// An error in an input file. Commands exit with 2 and print its position, the line and the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the user named it.
    pub file: String,
    /// The content of the file.
    pub text: String,
    /// The byte range of the error in `text`.
    pub span: Range<usize>,
    /// What is wrong, as one sentence without a full stop.
    pub message: String,
    /// What to write instead, if that is known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span` of `text`, the content of `file`.
    pub fn new(
        file: &str,
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<&str>,
    ) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            file: file.to_owned(),
            text: text.to_owned(),
            span,
            message: message.into(),
            help: help.map(str::to_owned),
        })
    }

    /// The line and column of the error, both counted from 1, the column in characters.
    pub fn line_column(&self) -> (usize, usize) {
        LineIndex::new(&*self.text).line_column(self.span.start)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.line_column();
        let masked = MaskedText::of_document(&self.text);
        let start = masked.offset(self.span.start);
        // for a list or mapping, only the first line is displayed
        let first_line = masked.text[start..]
            .find(['\r', '\n'])
            .map_or(masked.text.len(), |at| start + at);
        let end = masked.offset(self.span.end).clamp(start, first_line);
        let snippet = Snippet::source(&masked.text)
            .path(None::<String>)
            .annotation(AnnotationKind::Primary.span(start..end));
        let message = one_line(&MaskedText::new(&self.message).text);
        let mut group = Level::ERROR.primary_title(&message).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        write!(
            f,
            "{}:{line}:{column}: {}",
            one_line(&self.file),
            Renderer::plain().render(&[group])
        )
    }
}

impl std::error::Error for Diagnostic {}

/// A text in which user names and passwords are masked, so that messages do not print them.
struct MaskedText {
    text: String,
    /// The byte ranges of the original that are masked, in ascending order.
    cuts: Vec<Range<usize>>,
}

const MASK: &str = "***";

/// The ends of keys that people write with a password. Documents name only where it is.
const PASSWORD_KEYS: [&str; 5] = ["password", "passwd", "token", "auth", "credentials"];

/// The ranges of the user names and passwords in the URLs of `text`.
fn userinfo_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::<Range<usize>>::new();
    let mut search = UserinfoSearch::new(text);
    for (scheme, _) in text.match_indices("://") {
        let start = scheme + 3;
        // the rest of a password may contain `://`, too
        if ranges.last().is_none_or(|last| start >= last.end)
            && let Some(length) = search.length(start)
        {
            ranges.push(start..start + length);
        }
    }
    ranges
}

/// The value of a key for a password.
#[derive(Clone, Copy)]
struct PasswordValue {
    /// The column of the key. The lines of its value are indented further.
    key: usize,
    /// The position of the value in the line of the key.
    start: usize,
    /// Whether the value begins on a later line.
    is_below: bool,
}

impl PasswordValue {
    /// Finds the first value of a key for a password in `line`. A mapping in braces is none.
    fn find(line: &str) -> Option<PasswordValue> {
        let lower = line.to_ascii_lowercase();
        let text = lower.as_str();
        let values = PASSWORD_KEYS.iter().flat_map(|key| {
            text.match_indices(*key).filter_map(move |(at, key)| {
                let rest = text[at + key.len()..].trim_start_matches(['"', '\'']);
                let value = rest.strip_prefix(':')?.trim_start();
                let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let before = text[..at].rfind(|c: char| !is_of_key(c));
                // the name of an image or host, as in `team/auth:1.2`
                let is_name =
                    before.is_some_and(|before| text[before..].starts_with(['/', '.', '@']));
                let found = PasswordValue {
                    key: before.map_or(0, |before| before + 1),
                    start: text.len() - value.len(),
                    is_below: value.is_empty() || value.starts_with('#'),
                };
                (!is_name && !value.starts_with('{')).then_some(found)
            })
        });
        values.min_by_key(|value| value.start)
    }

    /// Whether the value also has the next line, which is `text` after its indentation. A mapping
    /// has keys of its own.
    fn has_line(self, indentation: usize, text: &str) -> bool {
        if !self.is_below {
            return indentation > self.key;
        }
        let is_item = indentation == self.key && text.starts_with("- ");
        let has_key = text.starts_with(['{', '#']) || text.contains(": ") || text.ends_with(':');
        (indentation > self.key || is_item) && !has_key
    }
}

impl MaskedText {
    /// Masks the user names and passwords in URLs.
    fn new(text: &str) -> MaskedText {
        MaskedText::without(text, userinfo_ranges(text))
    }

    /// Like `new`, also masks the rest of each line after a key for a password, and the further
    /// lines of its value.
    fn of_document(text: &str) -> MaskedText {
        let mut cuts = userinfo_ranges(text);
        let mut open: Option<PasswordValue> = None;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let content = line.trim_end();
            let value = content.trim_start();
            let indentation = content.len() - value.len();
            let end = start + content.len();
            if open.is_some_and(|open| open.has_line(indentation, value)) {
                cuts.push(start + indentation..end);
            } else if !value.is_empty() {
                let found = PasswordValue::find(content);
                let cut = found.map(|found| start + found.start..end);
                cuts.extend(cut.filter(|cut| !cut.is_empty()));
                // a comment has no further lines
                open = found.filter(|_| !value.starts_with('#'));
            }
            start += line.len();
        }
        cuts.sort_by_key(|cut| cut.start);
        // the value may contain a URL
        cuts.dedup_by(|later, earlier| {
            let overlaps = later.start < earlier.end;
            if overlaps {
                earlier.end = earlier.end.max(later.end);
            }
            overlaps
        });
        MaskedText::without(text, cuts)
    }

    fn without(text: &str, cuts: Vec<Range<usize>>) -> MaskedText {
        let mut masked = String::with_capacity(text.len());
        let mut done = 0;
        for cut in &cuts {
            masked.push_str(&text[done..cut.start]);
            masked.push_str(MASK);
            done = cut.end;
        }
        masked.push_str(&text[done..]);
        MaskedText { text: masked, cuts }
    }

    /// Converts the offset `at` in the original text to an offset in the masked text.
    fn offset(&self, at: usize) -> usize {
        let mut offset = at;
        for cut in self.cuts.iter().take_while(|cut| cut.start < at) {
            offset = offset - (at.min(cut.end) - cut.start) + MASK.len();
        }
        self.text.floor_char_boundary(offset)
    }
}

impl From<Box<Diagnostic>> for Failure {
    fn from(diagnostic: Box<Diagnostic>) -> Failure {
        Failure::usage(diagnostic.to_string())
    }
}

impl From<Vec<Diagnostic>> for Failure {
    /// The failure with all errors of one document, from its first line to its last.
    fn from(mut diagnostics: Vec<Diagnostic>) -> Failure {
        // keys are checked before values, but people read a file from top to bottom
        diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
        let all: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        Failure::usage(all.join("\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::growth::assert_linear;

    fn shown(text: &str, word: &str) -> String {
        let start = text.find(word).unwrap();
        let span = start..start + word.len();
        Diagnostic {
            file: "m.yaml".into(),
            text: text.into(),
            span,
            message: "it is wrong".into(),
            help: Some("write it right".into()),
        }
        .to_string()
    }

    #[test]
    fn position_line_and_fix_are_displayed() {
        let expected = "\
m.yaml:2:5: error: it is wrong
  |
2 | é: [word]
  |     ^^^^
  |
  = help: write it right";
        assert_eq!(shown("a: 1\né: [word]\n", "word"), expected);
    }

    #[test]
    fn many_schemes_without_a_blank_take_linear_time() {
        for end in ["", "@", "@and more"] {
            assert_linear(20_000, |count| {
                drop(MaskedText::new(&format!("{}{end}", "://".repeat(count))));
            });
        }
        for part in [
            "password",
            "password:",
            "credentials: {",
            "token:\"' ",
            "token:\n ",
        ] {
            assert_linear(20_000, |count| {
                drop(MaskedText::of_document(&part.repeat(count)));
            });
        }
    }

    #[test]
    fn no_password_is_shown() {
        let text = "a: http://joe:s3cr:t@h/x\nb: {u: \"https://k@y:pw@h/é@é\", word: 1}\n";
        let shown = shown(text, "word");
        assert!(
            shown.contains("b: {u: \"https://***@h/é@é\", word: 1}"),
            "{shown}"
        );
        let line = shown.lines().nth(2).unwrap();
        let marks = shown.lines().nth(3).unwrap();
        assert_eq!(
            marks.find('^'),
            Some(line.chars().position(|c| c == 'w').unwrap()),
            "{shown}"
        );
        for inside in ["s3cr", "joe:s3cr:t@h", "http://joe"] {
            assert!(!super::tests::shown(text, inside).contains("s3cr"));
        }
        let quoted = super::tests::shown("a: 'http://joe:s3''cr#t@h.test/x'\n", "h.test");
        assert!(quoted.contains("| a: 'http://***@h.test/x'"), "{quoted}");
        for (text, line) in [
            ("word: 1 # password: x\n", "word: 1 # password: ***"),
            (
                "{word: {\"password\": 'hu, sh'}}\n",
                "{word: {\"password\": ***",
            ),
            ("{token: http://hush@h, word: 1}\n", "{token: ***"),
            (
                "credentials: {word: u, password: hush}\n",
                "credentials: {word: u, password: ***",
            ),
            ("{Password: hush, word: 1}\n", "{Password: ***"),
            ("{identitytoken: hush, word: 1}\n", "{identitytoken: ***"),
            ("auth: \"word\"\n", "auth: ***"),
            ("credentials:\n  u:word\n", "  ***"),
            ("credentials:\n- word:hush\n", "***"),
            ("token: # old\n\n  word\n", "  ***"),
            ("a:\n- token: |-\n    hu: sh\n    word\n", "    ***"),
            ("credentials: \"u:hush\n  word\"\n", "  ***"),
            ("word: {passwordEnv: NAME}\n", "word: {passwordEnv: NAME}"),
            ("word: {credentials:\n  x}\n", "word: {credentials:"),
            ("credentials:\n  word: NAME\n", "  word: NAME"),
            ("- token: hush\n  word: 1\n", "  word: 1"),
            ("# token: hush\n    word: 1\n", "    word: 1"),
            ("word: team/auth:1.2\n", "word: team/auth:1.2"),
        ] {
            let shown = super::tests::shown(text, "word");
            assert!(shown.contains(&format!("| {line}\n")), "{shown}");
        }
    }

    #[test]
    fn a_mapping_is_shown_by_its_first_line() {
        let shown = shown("k:\r\n- a: 1\r\n  b: 2\r\n", "a: 1\r\n  b: 2");
        assert!(
            shown.contains("2 | - a: 1") && !shown.contains("b: 2"),
            "{shown}"
        );
    }
}
