//! Escapes untrusted text for terminals, logs, single lines of output, shells, HTML and CSV.

use askama::filters::Escaper;
use landfall_os::IS_WINDOWS;
use std::fmt::{self, Write};

/// Escapes untrusted `text` from a server, chart or archive, for use within one line.
///
/// The result cannot start a line, move the cursor or hide text: control characters, line
/// separators and invisible characters are escaped. The commands that CI services read in logs are
/// escaped too: `::` at the start (GitHub), `##[` and `##vso[` anywhere (Azure Pipelines).
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_command = text.trim_start().starts_with("::");
    for (at, c) in text.char_indices() {
        match c {
            ':' if std::mem::take(&mut is_command) => out.extend(c.escape_unicode()),
            '#' if ["##[", "##vso["]
                .iter()
                .any(|command| text[at..].starts_with(command)) =>
            {
                out.extend(c.escape_unicode());
            }
            '\n' | '\r' | '\t' => out.extend(c.escape_default()),
            c if is_hidden(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Applies [`one_line`] to each line of `text`, for text whose line breaks landfall wrote.
pub fn escape_lines(text: &str) -> String {
    text.split('\n')
        .map(one_line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether the character is invisible or moves other text: control characters, line and paragraph
/// separators, and characters that change the direction of text or have no width, such as the tags
/// U+E0000 to U+E007F, which can hide a whole text.
pub(super) fn is_hidden(c: char) -> bool {
    let has_no_width = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || has_no_width
}

// Quotes text for commands that people copy into a shell.

/// Quotes `text` as one word of a POSIX shell.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns `text` as one word of a POSIX shell, quoted only if needed.
pub fn shell_word(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_plain_in_shell) {
        text.to_owned()
    } else {
        shell_quoted(text)
    }
}

fn is_plain_in_shell(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c)
}

/// Returns an argument of a command that the user may type on this machine: as [`shell_word`], but
/// on Windows in the form that PowerShell and cmd share.
pub fn command_word(text: &str) -> String {
    if !IS_WINDOWS || text.contains('"') {
        shell_word(text)
    } else if !text.is_empty() && text.chars().all(|c| c == '\\' || is_plain_in_shell(c)) {
        text.to_owned()
    } else {
        format!("\"{text}\"")
    }
}

/// Escapes `plain` for the text of an element or for an attribute value in quotes.
///
/// Line feeds stay. Invisible characters and those that change the direction of text are written
/// as escapes such as `\u{202e}`.
pub fn escape_html(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    // writing to a string cannot fail
    let _ = write_escaped(&mut out, plain);
    out
}

/// The escaper of all HTML templates, like [`escape_html`]. A crate with templates names it in its
/// `askama.toml`.
#[derive(Debug, Clone, Copy)]
pub struct HtmlEscaper;

impl Escaper for HtmlEscaper {
    fn write_escaped_str<W: Write>(&self, dest: W, string: &str) -> fmt::Result {
        write_escaped(dest, string)
    }
}

fn write_escaped(mut dest: impl Write, plain: &str) -> fmt::Result {
    for c in plain.chars() {
        match c {
            '&' => dest.write_str("&amp;")?,
            '<' => dest.write_str("&lt;")?,
            '>' => dest.write_str("&gt;")?,
            '"' => dest.write_str("&quot;")?,
            '\'' => dest.write_str("&#39;")?,
            '\n' => dest.write_char(c)?,
            c if is_hidden(c) => write!(dest, "{}", c.escape_unicode())?,
            c => dest.write_char(c)?,
        }
    }
    Ok(())
}

// Lines of CSV (RFC 4180) that spreadsheets open safely.

/// Formats one line of CSV, with its line end (CRLF).
pub fn csv_line<T: AsRef<str>>(fields: impl IntoIterator<Item = T>) -> String {
    let fields: Vec<String> = fields
        .into_iter()
        .map(|field| quoted(field.as_ref()))
        .collect();
    fields.join(",") + "\r\n"
}

/// Returns `field` on one line, quoted if needed, and marked as text if it looks like a formula.
fn quoted(field: &str) -> String {
    let field = one_line(field);
    // spreadsheets evaluate a field as a formula if it begins with one of these, even after blanks
    let is_formula = field.trim_start().starts_with(['=', '+', '-', '@']);
    let field = if is_formula {
        format!("'{field}")
    } else {
        field
    };
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_begins_a_line_or_a_command() {
        for (text, line) in [
            ("käse: 1\\2", "käse: 1\\2"),
            ("a\nb\r\tc", "a\\nb\\r\\tc"),
            ("\u{1b}[2J\u{9b}x\u{7f}", "\\u{1b}[2J\\u{9b}x\\u{7f}"),
            (
                "a\u{202e}b\u{2028}c\u{85}d",
                "a\\u{202e}b\\u{2028}c\\u{85}d",
            ),
            (
                "a\u{ad}b\u{180e}c\u{e0041}d\u{206a}",
                "a\\u{ad}b\\u{180e}c\\u{e0041}d\\u{206a}",
            ),
            ("::error::x", "\\u{3a}:error::x"),
            (" ::stop-commands::x", " \\u{3a}:stop-commands::x"),
            ("\n::x::", "\\n\\u{3a}:x::"),
            (
                "a::b: ##[error]x ##vso[x] ### #[",
                "a::b: \\u{23}#[error]x \\u{23}#vso[x] ### #[",
            ),
        ] {
            assert_eq!(one_line(text), line);
            assert_eq!(one_line(line), line, "safe text is unchanged");
        }
        assert_eq!(escape_lines("a\n::b\n\tc\n"), "a\n\\u{3a}:b\n\\tc\n");
    }

    #[test]
    fn a_word_is_quoted_if_a_shell_would_change_it() {
        for (text, word) in [
            ("a/b-1.yaml", "a/b-1.yaml"),
            ("/mnt/1/V.0001", "/mnt/1/V.0001"),
            ("my disc/V", "'my disc/V'"),
            ("my file's", r"'my file'\''s'"),
            ("it's", r"'it'\''s'"),
            ("quay.io/a/b:v1@sha256:0", "quay.io/a/b:v1@sha256:0"),
            ("x'; rm -rf $HOME", r"'x'\''; rm -rf $HOME'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
        assert_eq!(shell_quoted("a'b $c"), r"'a'\''b $c'");
    }

    #[test]
    fn every_markup_and_hidden_character_is_escaped() {
        assert_eq!(
            escape_html("<b a='\"'>&"),
            "&lt;b a=&#39;&quot;&#39;&gt;&amp;"
        );
        assert_eq!(
            escape_html("a\u{202e}b\u{0}\n\u{7}"),
            "a\\u{202e}b\\u{0}\n\\u{7}"
        );
        assert_eq!(escape_html("käse 🧀"), "käse 🧀");
    }
}
