//! Text from outside, made safe for a terminal.

/// Escapes the control characters of `text`, so that a terminal can show it. Line feeds stay.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}
