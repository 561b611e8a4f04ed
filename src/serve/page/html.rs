//! Text as HTML.

use std::fmt::{Display, Write as _};

/// `text` as the text of an element, or as the value of an attribute in double quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // what turns the direction of text around could make a name look like another
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// `text` as one word of a shell.
pub(super) fn shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A count with its noun: `1 image`, `2 images`.
pub(super) fn count(count: usize, noun: impl Display) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_markup_and_nothing_hides() {
        assert_eq!(escaped("<b a='\"'>&"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
        assert_eq!(escaped("a\u{202e}b\u{0}\n"), "a\\u{202e}b\\u{0}\\u{a}");
        assert_eq!(escaped("käse 🧀"), "käse 🧀");
    }

    #[test]
    fn a_shell_reads_one_word() {
        assert_eq!(shell("quay.io/a/b:v1@sha256:0"), "quay.io/a/b:v1@sha256:0");
        assert_eq!(shell("x'; rm -rf $HOME"), r"'x'\''; rm -rf $HOME'");
        assert_eq!(shell(""), "''");
    }
}
