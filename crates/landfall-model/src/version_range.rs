//! Version ranges of update policies: `~1.9`, `^2`, `>=1.2 <2`, `1.x`, `*`, and alternatives with
//! `||`.

use super::version::{TagVersion, VersionNumber};
use std::cmp::Ordering;

/// A range of tag versions. It compares only their [core](TagVersion::core), unless a limit is a
/// pre-release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagVersionRange {
    alternatives: Vec<Vec<Bound>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    operator: Operator,
    /// The limit, or `None` for any version.
    version: Option<TagVersion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// `~1.9` fixes the major and minor version, `~1` the major version.
    Tilde,
    /// `^2` fixes the numbers up to the first that is not 0.
    Caret,
    AtLeast,
    Above,
    AtMost,
    Below,
    /// `1.9` or `1.9.x`: the version starts with these numbers.
    Like,
}

const OPERATORS: [(&str, Operator); 7] = [
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    (">=", Operator::AtLeast),
    (">", Operator::Above),
    ("<=", Operator::AtMost),
    ("<", Operator::Below),
    ("=", Operator::Like),
];

impl TagVersionRange {
    /// Parses a range; returns `None` if `text` is not a range.
    pub fn parse(text: &str) -> Option<TagVersionRange> {
        let alternatives = text
            .split("||")
            .map(parse_alternative)
            .collect::<Option<Vec<_>>>()?;
        Some(TagVersionRange { alternatives })
    }

    /// Whether a limit of the range is a pre-release, so that the range allows pre-releases.
    pub fn names_prerelease(&self) -> bool {
        let bounds = self.alternatives.iter().flatten();
        bounds
            .filter_map(|bound| bound.version.as_ref())
            .any(TagVersion::is_prerelease)
    }

    /// Whether `version` is in the range.
    pub fn has(&self, version: &TagVersion) -> bool {
        self.alternatives
            .iter()
            .any(|bounds| bounds.iter().all(|bound| bound.has(version)))
    }
}

fn parse_alternative(text: &str) -> Option<Vec<Bound>> {
    // a blank may follow an operator
    let mut text = text.replace(',', " ");
    for (operator, _) in OPERATORS {
        while text.contains(&format!("{operator} ")) {
            text = text.replace(&format!("{operator} "), operator);
        }
    }
    let bounds: Option<Vec<Bound>> = text.split_whitespace().map(Bound::parse).collect();
    bounds.filter(|bounds| !bounds.is_empty())
}

impl Bound {
    fn parse(text: &str) -> Option<Bound> {
        let (operator, rest) = OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)))
            .unwrap_or((Operator::Like, text));
        let rest = rest.strip_prefix(['v', 'V']).unwrap_or(rest);
        // a wildcard means the same as leaving the numbers out
        let rest = [".x", ".X", ".*"]
            .iter()
            .fold(rest, |rest, any| rest.split(any).next().unwrap_or(rest));
        if operator == Operator::Like && matches!(rest, "*" | "x" | "X") {
            return Some(Bound {
                operator,
                version: None,
            });
        }
        let version = TagVersion::parse(rest)?;
        let is_plain = rest.starts_with(|c: char| c.is_ascii_digit())
            && rest
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
        // n numbers with dots between them have a shape of 2n - 1 characters; a pre-release is not
        // part of the shape
        let is_core = version.shape().len() + 1 == 2 * version.core().len();
        (is_plain && is_core).then_some(Bound {
            operator,
            version: Some(version),
        })
    }

    fn has(&self, version: &TagVersion) -> bool {
        let Some(bound) = &self.version else {
            return true;
        };
        let limit = bound.core();
        let core = version.core();
        let zero = VersionNumber::default();
        // `1.9` and `1.9.0` are equal, so missing numbers count as 0
        let padded: Vec<&VersionNumber> = core
            .iter()
            .copied()
            .chain(std::iter::repeat(&zero))
            .take(limit.len())
            .collect();
        let same = |count: usize| padded.iter().zip(&limit).take(count).all(|(a, b)| a == b);
        let mut order = padded.cmp(&limit);
        if order == Ordering::Equal && bound.is_prerelease() && core.len() == limit.len() {
            order = version.order(bound);
        }
        match self.operator {
            Operator::Tilde => order != Ordering::Less && same(limit.len().min(2)),
            Operator::Caret => {
                let first = limit.iter().position(|number| !number.is_zero());
                order != Ordering::Less && same(first.map_or(limit.len(), |first| first + 1))
            }
            Operator::AtLeast => order != Ordering::Less,
            Operator::Above => order == Ordering::Greater,
            Operator::AtMost => order != Ordering::Greater,
            Operator::Below => order == Ordering::Less,
            Operator::Like => order == Ordering::Equal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(range: &str, version: &str) -> bool {
        TagVersionRange::parse(range)
            .unwrap()
            .has(&TagVersion::parse(version).unwrap())
    }

    #[test]
    fn ranges_contain_the_versions_that_they_describe() {
        for (range, inside, outside) in [
            (
                "~1.9",
                &["1.9.0", "v1.9.12", "1.9.3-alpine3.20"][..],
                &["1.10.0", "1.8.9", "2.0.0"][..],
            ),
            ("~1.9.3", &["1.9.3", "1.9.4"], &["1.9.2", "1.10.0"]),
            ("~1", &["1.0.0", "1.99.0"], &["2.0.0", "0.9.0"]),
            ("^2", &["2.0.0", "2.99.1"], &["3.0.0", "1.9.9"]),
            ("^0.3.1", &["0.3.1", "0.3.9"], &["0.4.0", "0.3.0"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4"]),
            (">=1.2 <2", &["1.2.0", "1.99"], &["2.0.0", "1.1.9"]),
            (">= 1.2, < 2", &["1.2.0"], &["2.0.0"]),
            (">1.9", &["1.10.0"], &["1.9.5"]),
            ("<=1.9", &["1.9.5", "1.0"], &["1.10.0"]),
            ("1.9", &["1.9.0", "1.9.7"], &["1.10.0"]),
            ("1.9.x", &["1.9.0", "1.9.7"], &["1.10.0"]),
            ("1.x || 3.x", &["1.9.0", "3.0.0"], &["2.0.0"]),
            ("*", &["0.0.1", "20240115"], &[]),
            (
                ">=1.2.0-rc.2",
                &["1.2.0-rc.2", "1.2.0", "1.3.0"],
                &["1.2.0-rc.1", "1.1.0"],
            ),
            (">=20240101", &["20240115"], &["20231231"]),
        ] {
            for version in inside {
                assert!(has(range, version), "{range} has {version}");
            }
            for version in outside {
                assert!(!has(range, version), "{range} does not have {version}");
            }
        }
        for bad in ["", "latest", "~", ">=a", "^1-alpine", "1..2", ">=1.2 ||"] {
            assert_eq!(TagVersionRange::parse(bad), None, "{bad}");
        }
    }
}
