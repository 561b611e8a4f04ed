//! Parses the relations between packages (Debian Policy 7.1): `a (>= 1) | b:any, c [amd64]`.

use super::version::compare;
use std::cmp::Ordering;
use std::fmt;

/// The operator of a version constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionOperator {
    Any,
    Earlier,
    EarlierEqual,
    Equal,
    LaterEqual,
    Later,
}

/// One alternative of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParsedRelation<'t> {
    pub name: &'t str,
    /// The qualifier after the colon: an architecture, `any` or `native`.
    pub arch: Option<&'t str>,
    pub op: VersionOperator,
    /// The version to compare with; empty for [`VersionOperator::Any`].
    pub version: &'t str,
    /// Whether another alternative of the same relation follows.
    pub or: bool,
}

impl VersionOperator {
    /// Whether `version` satisfies the constraint of this operator and `bound`.
    pub fn allows(self, version: &str, bound: &str) -> bool {
        // most relations have no version, so nothing is compared for them
        if self == VersionOperator::Any {
            return true;
        }
        let order = compare(version, bound);
        match self {
            VersionOperator::Any => true,
            VersionOperator::Earlier => order == Ordering::Less,
            VersionOperator::EarlierEqual => order != Ordering::Greater,
            VersionOperator::Equal => order == Ordering::Equal,
            VersionOperator::LaterEqual => order != Ordering::Less,
            VersionOperator::Later => order == Ordering::Greater,
        }
    }
}

impl fmt::Display for VersionOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VersionOperator::Any => "",
            VersionOperator::Earlier => "<<",
            VersionOperator::EarlierEqual => "<=",
            VersionOperator::Equal => "=",
            VersionOperator::LaterEqual => ">=",
            VersionOperator::Later => ">>",
        })
    }
}

/// Iterates over the alternatives of all relations in `text`. Alternatives without a name are
/// skipped.
pub(super) fn relations(text: &str) -> impl Iterator<Item = ParsedRelation<'_>> {
    let groups = text
        .split(',')
        .map(str::trim)
        .filter(|group| !group.is_empty());
    groups.flat_map(|group| {
        let named = group
            .split('|')
            .filter_map(|one| parse_alternative(one.trim()));
        let mut named = named.peekable();
        std::iter::from_fn(move || {
            let one = named.next()?;
            let or = named.peek().is_some();
            Some(ParsedRelation { or, ..one })
        })
    })
}

/// Parses one alternative. Its `or` is always false; the caller sets it.
fn parse_alternative(text: &str) -> Option<ParsedRelation<'_>> {
    // restrictions to architectures `[…]` and profiles `<…>` apply to source packages only
    let (text, version) = match text.split_once('(') {
        Some((name, version)) => (name, version.split(')').next().unwrap_or_default().trim()),
        None => (text.split(['[', '<']).next().unwrap_or_default(), ""),
    };
    let (name, arch) = match text.trim().split_once(':') {
        Some((name, arch)) => (name, Some(arch)),
        None => (text.trim(), None),
    };
    let (op, version) = match version.as_bytes() {
        [] => (VersionOperator::Any, version),
        [b'<', b'<', ..] => (VersionOperator::Earlier, &version[2..]),
        [b'<', b'=', ..] => (VersionOperator::EarlierEqual, &version[2..]),
        [b'>', b'=', ..] => (VersionOperator::LaterEqual, &version[2..]),
        [b'>', b'>', ..] => (VersionOperator::Later, &version[2..]),
        [b'=', b'=', ..] => (VersionOperator::Equal, &version[2..]),
        [b'=', ..] => (VersionOperator::Equal, &version[1..]),
        // Debian Policy 7.1: the deprecated `<` and `>` include the version itself
        [b'<', ..] => (VersionOperator::EarlierEqual, &version[1..]),
        [b'>', ..] => (VersionOperator::LaterEqual, &version[1..]),
        _ => (VersionOperator::Equal, version),
    };
    (!name.is_empty()).then_some(ParsedRelation {
        name,
        arch,
        op,
        version: version.trim(),
        or: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_parsed() {
        let read: Vec<_> = relations("a (>= 1:2~), b:any|c(<<3) , , d [amd64], e (= 1)").collect();
        let one = |name, arch, op, version, or| ParsedRelation {
            name,
            arch,
            op,
            version,
            or,
        };
        let wanted = [
            one("a", None, VersionOperator::LaterEqual, "1:2~", false),
            one("b", Some("any"), VersionOperator::Any, "", true),
            one("c", None, VersionOperator::Earlier, "3", false),
            one("d", None, VersionOperator::Any, "", false),
            one("e", None, VersionOperator::Equal, "1", false),
        ];
        assert_eq!(read, wanted);
        // an alternative without a name is skipped and does not set `or`
        let flags = relations("a | , b, | c | | d |").map(|one| (one.name, one.or));
        let expected = [("a", false), ("b", false), ("c", true), ("d", false)];
        assert_eq!(flags.collect::<Vec<_>>(), expected);
        assert!(
            VersionOperator::LaterEqual.allows("1:2", "1:2~")
                && !VersionOperator::Earlier.allows("3", "3")
        );
    }
}
