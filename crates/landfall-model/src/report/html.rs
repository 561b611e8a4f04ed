//! Text from outside, made safe for HTML.

use super::escape::is_hidden;

/// `plain` as the text of an element, or as the value of an attribute in quotes. Line feeds stay;
/// other characters that a reader cannot see, or that turn the direction of text around, are named.
pub fn escape_html(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' => out.push(c),
            c if is_hidden(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_markup_and_nothing_hides() {
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
