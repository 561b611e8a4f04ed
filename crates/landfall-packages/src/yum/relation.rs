//! Relations of RPM packages: simple ones, and rich dependencies.

use super::version::{Evr, compare};
use std::cmp::Ordering;
use std::fmt;

// Relations of RPM packages: a name, and optionally a constraint on its version.

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
        let order = match (a.compare_versions(b), a.release, b.release) {
            (Ordering::Equal, Some(a), Some(b)) => compare(a, b),
            // a relation without a release matches every release
            (Ordering::Equal, None, Some(_)) => return self.has(Self::EQUAL),
            (Ordering::Equal, Some(_), None) => return other.has(Self::EQUAL),
            (order, ..) => order,
        };
        match order {
            Ordering::Less => self.has(Self::NEWER) || other.has(Self::OLDER),
            Ordering::Equal => self.has(Self::EQUAL) && other.has(Self::EQUAL),
            Ordering::Greater => self.has(Self::OLDER) || other.has(Self::NEWER),
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
            (name, None, _) => RpmRelation::any(name),
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

// Parses rich dependencies: `(a or b)`, `(a and b >= 1)`, `(a if b else c)`, `(a unless b)`,
// `(a with b)`, `(a without b)`.
//
// RPM's manual calls them "boolean dependencies".

/// A dependency: a single relation, or several joined by operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RichDependency<'a> {
    One(RpmRelation<'a>),
    /// All parts must be satisfied.
    And(Vec<RichDependency<'a>>),
    /// At least one part must be satisfied.
    Or(Vec<RichDependency<'a>>),
    /// If the second part is satisfied, the first must be too. Otherwise the `else` part must be,
    /// if there is one.
    If(
        Box<[RichDependency<'a>; 2]>,
        Option<Box<RichDependency<'a>>>,
    ),
    /// If the second part is not satisfied, the first must be. Otherwise the `else` part must be;
    /// without an `else` part, the dependency is then not satisfied.
    Unless(
        Box<[RichDependency<'a>; 2]>,
        Option<Box<RichDependency<'a>>>,
    ),
    /// One package must satisfy all parts.
    With(Vec<RichDependency<'a>>),
    /// One package must satisfy the first part and not the second.
    Without(Box<[RichDependency<'a>; 2]>),
}

/// The maximum nesting of parentheses. The parser is recursive, and the text is untrusted.
const DEPTH: usize = 32;

impl<'a> RichDependency<'a> {
    /// Parses a dependency, rich or plain. Returns `None` if it is malformed.
    pub(super) fn parse(text: &'a str) -> Option<RichDependency<'a>> {
        if !text.starts_with('(') {
            return RpmRelation::parse(text).map(RichDependency::One);
        }
        let mut rest = text;
        let rich = group(&mut rest, DEPTH)?;
        rest.trim().is_empty().then_some(rich)
    }

    /// Parses the name of `relation` if it is a rich dependency, which has no version. Otherwise
    /// returns the relation itself. Returns `None` if the rich dependency is malformed.
    pub(super) fn parse_relation(relation: &RpmRelation<'a>) -> Option<RichDependency<'a>> {
        if RichDependency::is_rich(relation.name) {
            RichDependency::parse(relation.name)
        } else {
            Some(RichDependency::One(*relation))
        }
    }

    /// Calls `visit` for each relation in the dependency.
    pub(super) fn each_relation(&self, visit: &mut dyn FnMut(&RpmRelation<'a>)) {
        match self {
            RichDependency::One(relation) => visit(relation),
            RichDependency::And(all) | RichDependency::Or(all) | RichDependency::With(all) => {
                all.iter().for_each(|one| one.each_relation(visit));
            }
            // conditions count too: a file in a condition affects whether the condition holds
            RichDependency::If(both, otherwise) | RichDependency::Unless(both, otherwise) => {
                both.iter().for_each(|one| one.each_relation(visit));
                otherwise.iter().for_each(|one| one.each_relation(visit));
            }
            RichDependency::Without(both) => both.iter().for_each(|one| one.each_relation(visit)),
        }
    }

    /// Whether `text` is a rich dependency, which always begins with a parenthesis.
    pub(super) fn is_rich(text: &str) -> bool {
        text.starts_with('(')
    }
}

/// Parses the dependency in parentheses at the beginning of `rest`, and advances `rest` past it.
fn group<'a>(rest: &mut &'a str, depth: usize) -> Option<RichDependency<'a>> {
    *rest = rest.strip_prefix('(')?;
    let first = operand(rest, depth)?;
    // `(a)` is `a`
    if let Some(remaining) = rest.trim_start().strip_prefix(')') {
        *rest = remaining;
        return Some(first);
    }
    let word = word(rest)?;
    let second = operand(rest, depth)?;
    let rich = match word {
        "and" | "or" | "with" => {
            let mut all = vec![first, second];
            // different operators cannot be mixed without parentheses
            while !rest.trim_start().starts_with(')') {
                if self::word(rest)? != word {
                    return None;
                }
                all.push(operand(rest, depth)?);
            }
            match word {
                "and" => RichDependency::And(all),
                "or" => RichDependency::Or(all),
                _ => RichDependency::With(all),
            }
        }
        "if" | "unless" => {
            let otherwise = if rest.trim_start().starts_with(')') {
                None
            } else if self::word(rest)? == "else" {
                Some(Box::new(operand(rest, depth)?))
            } else {
                return None;
            };
            let both = Box::new([first, second]);
            if word == "if" {
                RichDependency::If(both, otherwise)
            } else {
                RichDependency::Unless(both, otherwise)
            }
        }
        "without" => RichDependency::Without(Box::new([first, second])),
        _ => return None,
    };
    *rest = rest.trim_start().strip_prefix(')')?;
    Some(rich)
}

/// Parses a dependency in parentheses, or a plain relation, at the beginning of `rest`, and
/// advances `rest` past it.
fn operand<'a>(rest: &mut &'a str, depth: usize) -> Option<RichDependency<'a>> {
    *rest = rest.trim_start();
    if rest.starts_with('(') {
        return group(rest, depth.checked_sub(1)?);
    }
    let name = word(rest)?;
    // the next word is consumed only if it is a comparison operator; any other word belongs to the
    // enclosing dependency
    let mut remaining = *rest;
    match word(&mut remaining).and_then(VersionSense::parse) {
        None => Some(RichDependency::One(RpmRelation::any(name))),
        Some(sense) => {
            let evr = word(&mut remaining)?;
            *rest = remaining;
            Some(RichDependency::One(RpmRelation { name, sense, evr }))
        }
    }
}

/// Returns the next word of `rest`, and advances `rest` past it. A word ends at a blank, or at a
/// closing parenthesis that has no opening one in the word: capabilities contain parentheses, such
/// as `libc.so.6()(64bit)`.
fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start();
    let mut open = 0_usize;
    let end = text
        .bytes()
        .position(|byte| match byte {
            b' ' | b'\t' => true,
            b'(' => {
                open += 1;
                false
            }
            b')' if open == 0 => true,
            b')' => {
                open -= 1;
                false
            }
            _ => false,
        })
        .unwrap_or(text.len());
    let (word, remaining) = text.split_at(end);
    *rest = remaining;
    (!word.is_empty()).then_some(word)
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

    fn one(text: &str) -> RichDependency<'_> {
        RichDependency::One(RpmRelation::parse(text).unwrap())
    }

    #[test]
    fn every_operator_is_parsed() {
        let two = |a, b| Box::new([one(a), one(b)]);
        let cases = [
            ("a >= 1", one("a >= 1")),
            ("(a)", one("a")),
            (
                "(a and b and c = 2)",
                RichDependency::And(vec![one("a"), one("b"), one("c = 2")]),
            ),
            (
                "(a or lib(x)(64bit) < 3)",
                RichDependency::Or(vec![one("a"), one("lib(x)(64bit) < 3")]),
            ),
            ("(a if b)", RichDependency::If(two("a", "b"), None)),
            (
                "(a if b else c)",
                RichDependency::If(two("a", "b"), Some(Box::new(one("c")))),
            ),
            (
                "(a unless b else c)",
                RichDependency::Unless(two("a", "b"), Some(Box::new(one("c")))),
            ),
            (
                "(a >= 1 with a < 2)",
                RichDependency::With(vec![one("a >= 1"), one("a < 2")]),
            ),
            ("(a without b)", RichDependency::Without(two("a", "b"))),
            (
                "((a or b) if c)",
                RichDependency::If(
                    Box::new([RichDependency::Or(vec![one("a"), one("b")]), one("c")]),
                    None,
                ),
            ),
            ("( a  or  b )", RichDependency::Or(vec![one("a"), one("b")])),
        ];
        for (text, expected) in cases {
            assert_eq!(RichDependency::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn malformed_dependencies_are_rejected() {
        let deep = format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000));
        for text in [
            "(",
            "()",
            "(a",
            "(a b)",
            "(a or)",
            "(a or b and c)",
            "(a if b if c)",
            "(a) b",
            "(a >=)",
            &deep,
        ] {
            assert_eq!(
                RichDependency::parse(text),
                None,
                "{}",
                &text[..text.len().min(20)]
            );
        }
    }
}
