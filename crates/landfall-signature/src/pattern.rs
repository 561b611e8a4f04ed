//! Texts with `*` for any text.

use std::fmt;

/// A text in which `*` stands for any text, including `/` and the empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPattern(String);

impl TextPattern {
    pub(crate) fn new(text: impl Into<String>) -> TextPattern {
        TextPattern(text.into())
    }

    /// The text as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of `text` matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((start, rest)) = self.0.split_once('*') else {
            return text == self.0;
        };
        let Some(mut text) = text.strip_prefix(start) else {
            return false;
        };
        let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
        // the first match of each part leaves the most text for the parts after it
        for part in middle.split('*') {
            match text.split_once(part) {
                Some((_, after)) => text = after,
                None => return false,
            }
        }
        text.ends_with(end)
    }
}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text_and_other_characters_match_themselves() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a/*", "a/b/c", true),
            ("a/*", "a", false),
            ("*/b", "a/b", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1c2b", false),
            ("a*a", "a", false),
            ("ab*ba", "aba", false),
            ("a**b", "ab", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(
                TextPattern::new(pattern).matches(text),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
