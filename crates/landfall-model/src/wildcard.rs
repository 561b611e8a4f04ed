//! Patterns in which some characters stand for other text.

/// The characters of a pattern that stand for other text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wildcards {
    /// Stands for any bytes, or for none.
    pub any: u8,
    /// Stands for one byte.
    pub one: Option<u8>,
}

impl Wildcards {
    /// `*` stands for any text.
    pub const STAR: Wildcards = Wildcards {
        any: b'*',
        one: None,
    };

    /// `*` stands for any text, `?` for one byte.
    pub const SHELL: Wildcards = Wildcards {
        any: b'*',
        one: Some(b'?'),
    };

    /// Whether the whole of `text` matches `pattern`.
    ///
    /// It backtracks only to the last wildcard for any text, so it takes quadratic time at most.
    pub fn matches(self, pattern: &str, text: &str) -> bool {
        let pattern = pattern.as_bytes();
        let text = text.as_bytes();
        let mut pattern_at = 0;
        let mut text_at = 0;
        let mut last = None;
        while text_at < text.len() {
            match pattern.get(pattern_at) {
                Some(&byte) if byte == self.any => {
                    last = Some((pattern_at, text_at));
                    pattern_at += 1;
                }
                Some(&byte) if Some(byte) == self.one || byte == text[text_at] => {
                    pattern_at += 1;
                    text_at += 1;
                }
                _ => {
                    // let the last wildcard stand for one more byte
                    let Some((wildcard_at, matched)) = last else {
                        return false;
                    };
                    last = Some((wildcard_at, matched + 1));
                    pattern_at = wildcard_at + 1;
                    text_at = matched + 1;
                }
            }
        }
        pattern[pattern_at..].iter().all(|&byte| byte == self.any)
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
            ("a?c", "abc", false),
            ("2.2*", "2.2.1-1", true),
            ("1.33.4-*", "1.33.4-1.1", true),
            ("1", "1", true),
            ("*b*", "abc", true),
            ("2.2*", "2.1", false),
            ("1", "1.0", false),
            ("1*3", "1x2", false),
        ] {
            assert_eq!(
                Wildcards::STAR.matches(pattern, text),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn wildcards_match_any_text_or_one_byte() {
        for (pattern, text, expected) in [
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("containerd.io-2.2*", "containerd.io-2.2.1-1.el9", true),
            ("containerd.io-2.2*", "containerd.io-2.1.1-1.el9", false),
            ("*", "", true),
            ("a", "ab", false),
        ] {
            assert_eq!(
                Wildcards::SHELL.matches(pattern, text),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
