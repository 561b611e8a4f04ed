//! Rich dependencies: `(a or b)`, `(a and b >= 1)`, `(a if b else c)`, `(a unless b)`, `(a with
//! b)`, `(a without b)`.
//!
//! RPM's manual has them as "boolean dependencies".

use super::relation::{Relation, Sense};

/// A dependency: a relation, or relations joined by words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rich<'a> {
    /// A relation.
    One(Relation<'a>),
    /// All of them.
    And(Vec<Rich<'a>>),
    /// One of them at least.
    Or(Vec<Rich<'a>>),
    /// The first where the second holds, else the third.
    If(Box<[Rich<'a>; 2]>, Option<Box<Rich<'a>>>),
    /// The first where the second does not hold, else the third.
    Unless(Box<[Rich<'a>; 2]>, Option<Box<Rich<'a>>>),
    /// One package that is all of them.
    With(Vec<Rich<'a>>),
    /// A package that is the first, and not the second.
    Without(Box<[Rich<'a>; 2]>),
}

/// How deep parentheses may stand in each other; RPM itself writes few.
const DEPTH: usize = 32;

impl<'a> Rich<'a> {
    /// The dependency in `text`, which may be a relation alone. `None` where it is malformed.
    pub(super) fn parse(text: &'a str) -> Option<Rich<'a>> {
        if !text.starts_with('(') {
            return Relation::parse(text).map(Rich::One);
        }
        let mut rest = text;
        let rich = group(&mut rest, DEPTH)?;
        rest.trim().is_empty().then_some(rich)
    }

    /// The dependency that `relation` is: rich, or `relation` itself. `None` where it is malformed.
    pub(super) fn parse_relation(relation: &Relation<'a>) -> Option<Rich<'a>> {
        match Rich::is_rich(relation.name) {
            true => Rich::parse(relation.name),
            false => Some(Rich::One(*relation)),
        }
    }

    /// Shows each relation in it to `visit`.
    pub(super) fn each_relation(&self, visit: &mut dyn FnMut(&Relation<'a>)) {
        match self {
            Rich::One(relation) => visit(relation),
            Rich::And(all) | Rich::Or(all) | Rich::With(all) => {
                all.iter().for_each(|one| one.each_relation(visit));
            }
            Rich::If(both, otherwise) | Rich::Unless(both, otherwise) => {
                both.iter().for_each(|one| one.each_relation(visit));
                otherwise.iter().for_each(|one| one.each_relation(visit));
            }
            Rich::Without(both) => both.iter().for_each(|one| one.each_relation(visit)),
        }
    }

    /// Whether `text` is one in parentheses.
    pub(super) fn is_rich(text: &str) -> bool {
        text.starts_with('(')
    }
}

/// What stands in the parentheses that `rest` begins with.
fn group<'a>(rest: &mut &'a str, depth: usize) -> Option<Rich<'a>> {
    *rest = rest.strip_prefix('(')?;
    let first = operand(rest, depth)?;
    if let Some(behind) = rest.trim_start().strip_prefix(')') {
        *rest = behind;
        return Some(first);
    }
    let word = word(rest)?;
    let second = operand(rest, depth)?;
    let rich = match word {
        "and" | "or" | "with" => {
            let mut all = vec![first, second];
            while !rest.trim_start().starts_with(')') {
                if self::word(rest)? != word {
                    return None;
                }
                all.push(operand(rest, depth)?);
            }
            match word {
                "and" => Rich::And(all),
                "or" => Rich::Or(all),
                _ => Rich::With(all),
            }
        }
        "if" | "unless" => {
            let otherwise = match rest.trim_start().starts_with(')') {
                true => None,
                false if self::word(rest)? == "else" => Some(Box::new(operand(rest, depth)?)),
                false => return None,
            };
            let both = Box::new([first, second]);
            if word == "if" {
                Rich::If(both, otherwise)
            } else {
                Rich::Unless(both, otherwise)
            }
        }
        "without" => Rich::Without(Box::new([first, second])),
        _ => return None,
    };
    *rest = rest.trim_start().strip_prefix(')')?;
    Some(rich)
}

fn operand<'a>(rest: &mut &'a str, depth: usize) -> Option<Rich<'a>> {
    *rest = rest.trim_start();
    if rest.starts_with('(') {
        return group(rest, depth.checked_sub(1)?);
    }
    let name = word(rest)?;
    let mut behind = *rest;
    match word(&mut behind).and_then(Sense::parse) {
        None => Some(Rich::One(Relation {
            name,
            sense: Sense::ANY,
            evr: "",
        })),
        Some(sense) => {
            let evr = word(&mut behind)?;
            *rest = behind;
            Some(Rich::One(Relation { name, sense, evr }))
        }
    }
}

/// The next word of `rest`, which ends at a space, or at a parenthesis that closes none of its own.
fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start();
    let mut open = 0_usize;
    let ends = |byte: u8| match byte {
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
    };
    let end = text.bytes().position(ends).unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    *rest = behind;
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Rich<'_> {
        Rich::One(Relation::parse(text).unwrap())
    }

    #[test]
    fn each_word_is_read() {
        let two = |a, b| Box::new([one(a), one(b)]);
        let cases = [
            ("a >= 1", one("a >= 1")),
            ("(a)", one("a")),
            (
                "(a and b and c = 2)",
                Rich::And(vec![one("a"), one("b"), one("c = 2")]),
            ),
            (
                "(a or lib(x)(64bit) < 3)",
                Rich::Or(vec![one("a"), one("lib(x)(64bit) < 3")]),
            ),
            ("(a if b)", Rich::If(two("a", "b"), None)),
            (
                "(a if b else c)",
                Rich::If(two("a", "b"), Some(Box::new(one("c")))),
            ),
            (
                "(a unless b else c)",
                Rich::Unless(two("a", "b"), Some(Box::new(one("c")))),
            ),
            (
                "(a >= 1 with a < 2)",
                Rich::With(vec![one("a >= 1"), one("a < 2")]),
            ),
            ("(a without b)", Rich::Without(two("a", "b"))),
            (
                "((a or b) if c)",
                Rich::If(
                    Box::new([Rich::Or(vec![one("a"), one("b")]), one("c")]),
                    None,
                ),
            ),
            ("( a  or  b )", Rich::Or(vec![one("a"), one("b")])),
        ];
        for (text, expected) in cases {
            assert_eq!(Rich::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_malformed_is_told() {
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
            assert_eq!(Rich::parse(text), None, "{}", &text[..text.len().min(20)]);
        }
    }
}
