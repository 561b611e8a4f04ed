//! Parses rich dependencies: `(a or b)`, `(a and b >= 1)`, `(a if b else c)`, `(a unless b)`,
//! `(a with b)`, `(a without b)`.
//!
//! RPM's manual calls them "boolean dependencies".

use super::relation::{RpmRelation, VersionSense};

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
        None => Some(RichDependency::One(RpmRelation {
            name,
            sense: VersionSense::ANY,
            evr: "",
        })),
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
