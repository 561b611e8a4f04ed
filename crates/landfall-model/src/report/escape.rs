//! Escapes untrusted text for terminals, logs and single lines of output.

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
}
