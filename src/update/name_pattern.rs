//! The patterns of `--only`, in which `*` matches any text.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// A name in which `*` matches any text, even an empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamePattern(String);

impl FromStr for NamePattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<NamePattern, Infallible> {
        Ok(NamePattern(text.to_owned()))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl NamePattern {
    /// Whether the pattern matches `name`.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else {
            return false;
        };
        let Some(last) = self
            .0
            .contains('*')
            .then(|| pieces.next_back().unwrap_or_default())
        else {
            return rest.is_empty();
        };
        // The first occurrence of each piece is enough: a later one leaves less text for the
        // others.
        for piece in pieces {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text() {
        let matches = |pattern: &str, name| NamePattern(pattern.into()).matches(name);
        for (pattern, name) in [
            ("cni", "cni"),
            ("*", "x"),
            ("quay.io/*", "quay.io/a:1"),
            ("*/a:*", "q/a:1"),
            ("a*b*c", "axbyc"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("cni", "cni2"),
            ("quay.io/*", "x.quay.io/a"),
            ("a*b*c", "acb"),
            ("a*a", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
