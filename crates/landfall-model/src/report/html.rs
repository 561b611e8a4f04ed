//! Escapes untrusted text for HTML.

use super::escape::is_hidden;
use askama::filters::Escaper;
use std::fmt::{self, Write};

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

#[cfg(test)]
mod tests {
    use super::*;

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
