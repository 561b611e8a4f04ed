//! Relations of RPM packages: a name, and optionally a constraint on its version.

use super::version::{Evr, compare};
use std::cmp::Ordering;
use std::fmt;

/// The comparison operator of a relation: a set of the bits older, equal and newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionSense(u8);

impl VersionSense {
    /// The sense that matches every version.
    pub const ANY: VersionSense = VersionSense(0);
    const OLDER: u8 = 1;
    const EQUAL: u8 = 2;
    const NEWER: u8 = 4;
    /// Matches equal versions only (`=`).
    pub const SAME: VersionSense = VersionSense(Self::EQUAL);

    /// Parses `<`, `<=`, `=`, `>=`, `>`, or the words for them in a primary index, such as `GE`.
    pub fn parse(word: &str) -> Option<VersionSense> {
        Some(VersionSense(match word {
            "<" | "LT" => Self::OLDER,
            "<=" | "=<" | "LE" => Self::OLDER | Self::EQUAL,
            "=" | "==" | "EQ" => Self::EQUAL,
            ">=" | "=>" | "GE" => Self::NEWER | Self::EQUAL,
            ">" | "GT" => Self::NEWER,
            _ => return None,
        }))
    }

    fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    /// Whether some version satisfies both this comparison with `own` and the comparison `other`
    /// with `others`.
    pub fn meets(self, own: &str, other: VersionSense, others: &str) -> bool {
        // a name without a version matches everything, and two open ranges in the same direction
        // always overlap
        if self == VersionSense::ANY
            || other == VersionSense::ANY
            || self.0 & other.0 & (Self::OLDER | Self::NEWER) != 0
        {
            return true;
        }
        let a = Evr::parse(own);
        let b = Evr::parse(others);
        match a.compare_versions(b) {
            Ordering::Less => self.has(Self::NEWER) || other.has(Self::OLDER),
            Ordering::Greater => self.has(Self::OLDER) || other.has(Self::NEWER),
            // a relation without a release matches every release
            Ordering::Equal => match (a.release, b.release) {
                (Some(a), Some(b)) => match compare(a, b) {
                    Ordering::Less => self.has(Self::NEWER) || other.has(Self::OLDER),
                    Ordering::Equal => self.has(Self::EQUAL) && other.has(Self::EQUAL),
                    Ordering::Greater => self.has(Self::OLDER) || other.has(Self::NEWER),
                },
                (None, None) => self.has(Self::EQUAL) && other.has(Self::EQUAL),
                (None, Some(_)) => self.has(Self::EQUAL),
                (Some(_), None) => other.has(Self::EQUAL),
            },
        }
    }
}

/// A relation: `name`, or `name >= 1.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpmRelation<'a> {
    /// The name of a package, a capability or a file.
    pub name: &'a str,
    /// How a version must compare to `evr`.
    pub sense: VersionSense,
    /// The version; empty for [`VersionSense::ANY`].
    pub evr: &'a str,
}

impl<'a> RpmRelation<'a> {
    /// Returns the relation that every version of `name` satisfies.
    pub fn any(name: &'a str) -> RpmRelation<'a> {
        RpmRelation {
            name,
            sense: VersionSense::ANY,
            evr: "",
        }
    }

    /// Parses `name`, or `name operator version` with blanks between them. Returns `None` for other
    /// texts.
    pub fn parse(text: &'a str) -> Option<RpmRelation<'a>> {
        let mut words = text.split_ascii_whitespace();
        let relation = match (words.next()?, words.next(), words.next()) {
            (name, None, _) => RpmRelation {
                name,
                sense: VersionSense::ANY,
                evr: "",
            },
            (name, Some(sense), Some(evr)) => RpmRelation {
                name,
                sense: VersionSense::parse(sense)?,
                evr,
            },
            _ => return None,
        };
        words.next().is_none().then_some(relation)
    }
}

impl fmt::Display for RpmRelation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        let signs = [
            (VersionSense::OLDER, "<"),
            (VersionSense::NEWER, ">"),
            (VersionSense::EQUAL, "="),
        ];
        let signs: String = signs
            .iter()
            .filter(|(bit, _)| self.sense.has(*bit))
            .map(|(_, sign)| *sign)
            .collect();
        if signs.is_empty() {
            Ok(())
        } else {
            write!(f, " {signs} {}", self.evr)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meets(provided: &str, required: &str) -> bool {
        let [a, b] = [provided, required].map(|text| RpmRelation::parse(text).unwrap());
        a.name == b.name && a.sense.meets(a.evr, b.sense, b.evr)
    }

    #[test]
    fn a_provided_relation_satisfies_a_required_one() {
        let meeting = [
            ("a", "a"),
            ("a", "a >= 2"),
            ("a = 1-1", "a"),
            ("a = 1-1", "a = 1"),
            ("a = 1-1", "a <= 1"),
            ("a = 1-1", "a >= 1"),
            ("a = 1-1", "a = 1-1"),
            ("a = 1-1", "a < 1-2"),
            ("a = 1:1-1", "a > 9-1"),
            ("a = 0:1-1", "a = 1-1"),
            ("a >= 1", "a >= 5"),
            ("a < 2", "a > 1"),
            ("a <= 2", "a >= 2"),
            ("a = 1.0~rc1-1", "a < 1.0"),
            ("a = 1", "a >= 1-5"),
        ];
        for (provided, required) in meeting {
            assert!(meets(provided, required), "{provided} meets {required}");
        }
        let missing = [
            ("a = 1-1", "a > 1"),
            ("a = 1-1", "a < 1"),
            ("a = 1-1", "a = 1-2"),
            ("a = 2-1", "a < 2"),
            ("a = 9-1", "a >= 1:1"),
            ("a < 2", "a > 2"),
            ("a < 2", "a >= 2"),
            ("b", "a"),
        ];
        for (provided, required) in missing {
            assert!(
                !meets(provided, required),
                "{provided} does not meet {required}"
            );
        }
    }

    #[test]
    fn relations_are_printed_as_they_are_parsed() {
        for text in [
            "a",
            "a = 1",
            "a >= 1:2-3",
            "a <= 1",
            "a < 1",
            "a > 1",
            "libc.so.6(GLIBC_2.4)(64bit)",
        ] {
            assert_eq!(RpmRelation::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "a =", "a ~ 1", "a = 1 2"] {
            assert_eq!(RpmRelation::parse(text), None, "{text}");
        }
    }
}
