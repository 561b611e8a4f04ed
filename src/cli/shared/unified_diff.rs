//! A unified diff of a text and its edits. The positions of the edits are known, so only their
//! lines are compared.

use crate::cli::shared::{Context, OutputMode};
use landfall_model::redact_document;
use landfall_model::report::escape_lines;
use landfall_rewrite::RewrittenText;
use std::borrow::Cow;
use std::fmt::Write;
use std::io::IsTerminal;
use std::ops::Range;

/// The text that is shown instead of a value of a Secret.
pub(crate) const MASK: &str = "***";
/// The number of unchanged lines before and after a change.
const CONTEXT: usize = 3;

/// A byte range of a text, and its replacement.
pub(crate) type TextEdit = (Range<usize>, String);

/// The reader of a diff. It decides the form of the diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffReader {
    /// A program such as `patch`: all bytes are those of the file.
    Program,
    /// A user at a terminal: control characters are escaped.
    Terminal,
    /// A terminal with colours.
    Coloured,
}

impl DiffReader {
    /// The reader of stdout. `NO_COLOR` turns colours off.
    pub(crate) fn of_stdout(context: &Context) -> DiffReader {
        let is_terminal =
            context.global.output == OutputMode::Text && std::io::stdout().is_terminal();
        let is_coloured = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if !is_terminal {
            DiffReader::Program
        } else if is_coloured && landfall_os::has_colours() {
            DiffReader::Coloured
        } else {
            DiffReader::Terminal
        }
    }
}

/// Returns a unified diff that `patch -p1` applies, unless values of Secrets or credentials in URLs
/// are masked; empty if nothing differs.
pub(crate) fn diff(member: &RewrittenText, reader: DiffReader) -> String {
    let (old, edits) = masked(member);
    let path = member.path.trim_start_matches("./").trim_start_matches('/');
    redact_document(&unified(path, &old, edits, reader))
}

/// The unified diff of `old` and its `edits`, for the file at `path`.
pub(crate) fn unified(path: &str, old: &str, edits: Vec<TextEdit>, reader: DiffReader) -> String {
    let mut out = DiffWriter {
        text: String::new(),
        reader,
    };
    // `patch` and git expect this separator on every system
    let path = path.replace(std::path::MAIN_SEPARATOR, "/");
    let changes = changes(old, edits);
    let mut rest = changes.as_slice();
    if !rest.is_empty() {
        out.line("1", &format!("--- {}\n", quoted(&format!("a/{path}"))));
        out.line("1", &format!("+++ {}\n", quoted(&format!("b/{path}"))));
    }
    let mut more = 0;
    while !rest.is_empty() {
        // Changes whose context lines would touch are one hunk.
        let near = rest
            .windows(2)
            .take_while(|pair| pair[1].line - pair[0].end() <= 2 * CONTEXT)
            .count();
        let hunk;
        (hunk, rest) = rest.split_at(near + 1);
        out.hunk(old, hunk, &mut more);
    }
    out.text
}

/// Adjacent lines of the old text, and the lines that replace them.
struct ChangedLines {
    /// The byte range in the old text.
    span: Range<usize>,
    /// The number of the first line, from 0.
    line: usize,
    /// The number of old lines.
    count: usize,
    new: String,
}

impl ChangedLines {
    /// The number of the line after the last.
    fn end(&self) -> usize {
        self.line + self.count
    }
}

/// The lines that `edits` change. Adjacent lines are one change.
fn changes(old: &str, edits: Vec<TextEdit>) -> Vec<ChangedLines> {
    let mut changes: Vec<ChangedLines> = Vec::new();
    let mut edits = edits.into_iter().peekable();
    let mut line = 0;
    let mut counted = 0;
    while let Some((range, bytes)) = edits.next() {
        let start = old[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let mut new = format!("{}{bytes}", &old[start..range.start]);
        let mut done = range.end;
        let mut end = changed_until(old, &range, &bytes);
        while let Some((range, bytes)) = edits.next_if(|(range, _)| range.start <= end) {
            new.push_str(&old[done..range.start]);
            new.push_str(&bytes);
            (done, end) = (range.end, changed_until(old, &range, &bytes));
        }
        new.push_str(&old[done..end]);
        let (from, until, new) = shortened(&old[start..end], &new);
        line += lines(&old[counted..start + from]);
        counted = start + from;
        let span = counted..start + until;
        if !span.is_empty() || !new.is_empty() {
            changes.push(ChangedLines {
                count: old[span.clone()].split_inclusive('\n').count(),
                span,
                line,
                new: new.into(),
            });
        }
    }
    changes
}

/// The end of the lines that an edit changes. An edit of whole lines does not change the next line.
fn changed_until(old: &str, range: &Range<usize>, bytes: &str) -> usize {
    let begins_line = |at: usize| at == 0 || old[..at].ends_with('\n');
    let is_whole = bytes.is_empty() || bytes.ends_with('\n');
    if is_whole && begins_line(range.start) && begins_line(range.end) {
        return range.end;
    }
    old[range.end..]
        .find('\n')
        .map_or(old.len(), |len| range.end + len + 1)
}

/// Removes common lines at both ends. Returns the remaining range of `old`, and the remaining lines
/// of `new`.
fn shortened<'n>(old: &str, new: &'n str) -> (usize, usize, &'n str) {
    let from: usize = old
        .split_inclusive('\n')
        .zip(new.split_inclusive('\n'))
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len())
        .sum();
    let old_rest = &old[from..];
    let new_rest = &new[from..];
    let ends = old_rest
        .split_inclusive('\n')
        .rev()
        .zip(new_rest.split_inclusive('\n').rev());
    let same: usize = ends.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum();
    (from, old.len() - same, &new_rest[..new_rest.len() - same])
}

fn lines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

/// The old text with masked Secret values, and its edits. A changed value gets another mask, so
/// that the diff shows that it changes.
fn masked(member: &RewrittenText) -> (Cow<'_, str>, Vec<TextEdit>) {
    let scan = &member.new.scan;
    let mut secrets = scan.secrets.clone();
    secrets.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut old = String::new();
    let mut edits = Vec::new();
    let mut changes = scan.edits().into_iter().peekable();
    let mut done = 0;
    for secret in secrets {
        // A range within another one is masked with it.
        if secret.end <= done {
            continue;
        }
        let secret = secret.start.max(done)..secret.end;
        while let Some(edit) = changes.next_if(|edit| edit.span.start < secret.start) {
            edits.push((shifted(&edit.span, &old, done), edit.bytes.clone()));
        }
        old.push_str(&member.old[done..secret.start]);
        // Keeps the line breaks, so that line numbers of the diff are those of the file.
        let breaks = "\n".repeat(lines(&member.old[secret.clone()]));
        let mask = old.len()..old.len() + MASK.len();
        let _ = write!(old, "{MASK}{breaks}");
        if std::iter::from_fn(|| changes.next_if(|edit| edit.span.start < secret.end)).count() > 0 {
            edits.push((mask, format!("{MASK} (changed)")));
        }
        done = secret.end;
    }
    for edit in changes {
        edits.push((shifted(&edit.span, &old, done), edit.bytes.clone()));
    }
    if scan.secrets.is_empty() {
        return (Cow::Borrowed(&member.old), edits);
    }
    old.push_str(&member.old[done..]);
    (Cow::Owned(old), edits)
}

/// Translates the range of an edit to its range in the masked text. The edit must be outside all
/// masked ranges.
fn shifted(range: &Range<usize>, old: &str, done: usize) -> Range<usize> {
    range.start + old.len() - done..range.end + old.len() - done
}

/// A file name for a header, quoted as git and `patch` expect it: a line feed in a name would
/// otherwise begin a new line of the diff.
fn quoted(name: &str) -> Cow<'_, str> {
    if !name.contains(|c: char| c.is_control() || "\"\\".contains(c)) {
        return name.into();
    }
    let mut out = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = c
                    .to_string()
                    .bytes()
                    .try_for_each(|byte| write!(out, "\\{byte:03o}"));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out.into()
}

struct DiffWriter {
    text: String,
    reader: DiffReader,
}

impl DiffWriter {
    /// Writes one line in `colour`, a code of SGR (ECMA-48). Only the last line of a text may lack
    /// a line break.
    fn line(&mut self, colour: &str, line: &str) {
        if self.reader == DiffReader::Program {
            self.text.push_str(line);
            if !line.ends_with('\n') {
                self.text.push_str("\n\\ No newline at end of file\n");
            }
            return;
        }
        let line = escape_lines(line.trim_end_matches(['\n', '\r']));
        // Writing to a string cannot fail.
        let _ = match self.reader {
            DiffReader::Coloured => writeln!(self.text, "\u{1b}[{colour}m{line}\u{1b}[0m"),
            DiffReader::Terminal | DiffReader::Program => writeln!(self.text, "{line}"),
        };
    }

    fn all(&mut self, colour: &str, sign: char, lines: &str) {
        lines
            .split_inclusive('\n')
            .for_each(|line| self.line(colour, &format!("{sign}{line}")));
    }

    /// Writes a hunk of neighbouring changes. `more` is the difference in the number of lines that
    /// the changes before this hunk make: negative if they remove more lines than they add.
    fn hunk(&mut self, old: &str, changes: &[ChangedLines], more: &mut isize) {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
            return;
        };
        let before = old[..first.span.start]
            .split_inclusive('\n')
            .rev()
            .take(CONTEXT);
        let before: Vec<&str> = before.collect();
        let after: Vec<&str> = old[last.span.end..]
            .split_inclusive('\n')
            .take(CONTEXT)
            .collect();
        let start = first.line - before.len();
        let count = last.end() + after.len() - start;
        let grown = |change: &ChangedLines| {
            signed(change.new.split_inclusive('\n').count()) - signed(change.count)
        };
        let grown: isize = changes.iter().map(grown).sum();
        let from = range(signed(start), signed(count));
        let to = range(signed(start) + *more, signed(count) + grown);
        *more += grown;
        self.line("36", &format!("@@ -{from} +{to} @@\n"));
        before
            .iter()
            .rev()
            .for_each(|line| self.all("0", ' ', line));
        let mut done = first.span.start;
        for change in changes {
            self.all("0", ' ', &old[done..change.span.start]);
            self.all("31", '-', &old[change.span.clone()]);
            self.all("32", '+', &change.new);
            done = change.span.end;
        }
        after.iter().for_each(|line| self.all("0", ' ', line));
    }
}

fn signed(count: usize) -> isize {
    isize::try_from(count).unwrap_or(isize::MAX)
}

/// A line range in the header of a hunk, which counts lines from 1.
fn range(start: isize, count: isize) -> String {
    match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Applies a diff to `old`, and checks every line and number in it.
    fn patched(old: &str, diff: &str) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut new, mut done): (Vec<String>, usize) = (Vec::new(), 0);
        let hunks = diff.split("\n@@ ").skip(1);
        for hunk in hunks {
            let (head, body) = hunk.split_once(" @@\n").unwrap();
            let numbers = head
                .split([' ', '-', '+'])
                .filter(|word| !word.is_empty())
                .map(|word| {
                    let (start, count) = word.split_once(',').unwrap_or((word, "1"));
                    let (start, count): (usize, usize) =
                        (start.parse().unwrap(), count.parse().unwrap());
                    (if count == 0 { start } else { start - 1 }, count)
                });
            let [(from, olds), (to, news)] = numbers.collect::<Vec<_>>()[..] else {
                panic!("{head}")
            };
            new.extend(old[done..from].iter().map(|line| (*line).to_owned()));
            assert_eq!(new.len(), to, "{head}");
            done = from;
            let body = format!("{}\n", body.trim_end_matches('\n'))
                .replace("\n\\ No newline at end of file\n", "\0");
            for line in body.split_inclusive(['\n', '\0']) {
                let text = line[1..].trim_end_matches('\0');
                if !line.starts_with('+') {
                    assert_eq!(old[done], text);
                    done += 1;
                }
                if !line.starts_with('-') {
                    new.push(text.to_owned());
                }
            }
            assert_eq!((done - from, new.len() - to), (olds, news), "{head}");
        }
        new.extend(old[done..].iter().map(|line| (*line).to_owned()));
        new.concat()
    }

    #[test]
    fn no_control_character_reaches_a_terminal() {
        let name = "x\u{1b}[2J\n+++ b/y\"";
        let old = "\u{1b}[2Ja\u{7}\r-\n";
        for reader in [DiffReader::Terminal, DiffReader::Coloured] {
            let shown = unified(name, old, vec![(4..5, "b".into())], reader);
            let shown = shown.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
            assert!(
                !shown.contains(['\u{7}', '\r']) && !shown.contains("\u{1b}[2J"),
                "{shown:?}"
            );
            assert!(shown.contains("\\u{1b}[2J"), "{shown:?}");
        }
        let bytes = unified(name, old, vec![(4..5, "b".into())], DiffReader::Program);
        let header = r#"--- "a/x\033[2J\012+++ b/y\""
+++ "b/x\033[2J\012+++ b/y\""
"#;
        assert!(
            bytes.starts_with(header) && bytes.contains("-\u{1b}[2Ja\u{7}\r-\n"),
            "{bytes:?}"
        );
    }

    #[test]
    fn neighbours_share_a_hunk() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14";
        let edits = vec![
            (2..3, "b".into()),
            (4..5, "c".into()),
            (18..20, "j".into()),
            (30..32, "n".into()),
        ];
        let expected = "--- a/x\n+++ b/x\n@@ -1,14 +1,14 @@\n 1\n-2\n-3\n+b\n+c\n 4\n 5\n 6\n 7\n 8\n 9\n-10\n+j\n 11\n 12\n 13\n\
                        -14\n\\ No newline at end of file\n+n\n\\ No newline at end of file\n";
        assert_eq!(unified("x", old, edits, DiffReader::Program), expected);
        let edits = vec![
            (0..1, "a\nb".into()),
            (16..17, "i".into()),
            (18..20, "10".into()),
        ];
        let two = unified("x", old, edits, DiffReader::Program);
        assert_eq!(
            two,
            "--- a/x\n+++ b/x\n@@ -1,4 +1,5 @@\n-1\n+a\n+b\n 2\n 3\n 4\n@@ -6,7 +7,7 @@\n 6\n \
             7\n 8\n-9\n+i\n 10\n 11\n 12\n"
        );
        assert_eq!(
            unified("x", old, vec![(0..1, "1".into())], DiffReader::Program),
            ""
        );
        assert_eq!(unified("x", "", vec![], DiffReader::Program), "");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn applying_the_diff_gives_the_new_text(
            old in "([ab]{0,2}\n){0,30}[ab]{0,2}",
            edits in proptest::collection::vec((0usize..60, 0usize..5, "[abc\n]{0,4}"), 0..6),
        ) {
            let (mut new, mut done, mut made) = (String::new(), 0, Vec::new());
            for (gap, len, bytes) in edits {
                let start = (done + gap).min(old.len());
                let end = (start + len).min(old.len());
                new += &old[done..start];
                new += &bytes;
                made.push((start..end, bytes));
                done = end;
            }
            new += &old[done..];
            prop_assert_eq!(patched(&old, &unified("x", &old, made, DiffReader::Program)), new);
        }
    }
}
