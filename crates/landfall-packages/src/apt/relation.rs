//! Relations between packages as they are written (Debian Policy 7.1): `a (>= 1) | b:any, c
//! [amd64]`.

use super::version::compare;
use std::cmp::Ordering;
use std::fmt;

/// How a version must compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Any version.
    Any,
    Earlier,
    EarlierEqual,
    Equal,
    LaterEqual,
    Later,
}

/// One alternative of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written<'t> {
    /// The name.
    pub name: &'t str,
    /// What stands behind its colon.
    pub arch: Option<&'t str>,
    /// How the version must compare.
    pub op: Op,
    /// With which one.
    pub version: &'t str,
    /// Whether an alternative follows.
    pub or: bool,
}

impl Op {
    /// Whether `version` is such a version, compared with `wanted`.
    pub fn allows(self, version: &str, wanted: &str) -> bool {
        let order = || compare(version, wanted);
        match self {
            Op::Any => true,
            Op::Earlier => order() == Ordering::Less,
            Op::EarlierEqual => order() != Ordering::Greater,
            Op::Equal => order() == Ordering::Equal,
            Op::LaterEqual => order() != Ordering::Less,
            Op::Later => order() == Ordering::Greater,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Op::Any => "",
            Op::Earlier => "<<",
            Op::EarlierEqual => "<=",
            Op::Equal => "=",
            Op::LaterEqual => ">=",
            Op::Later => ">>",
        })
    }
}

/// The alternatives in `text`, one after the other. What is no relation ends the list.
pub(super) fn relations(text: &str) -> impl Iterator<Item = Written<'_>> {
    let groups = text
        .split(',')
        .map(str::trim)
        .filter(|group| !group.is_empty());
    groups.flat_map(|group| {
        let count = group.split('|').count();
        let all = group.split('|').enumerate();
        all.filter_map(move |(at, one)| alternative(one.trim(), at + 1 < count))
    })
}

fn alternative(text: &str, or: bool) -> Option<Written<'_>> {
    // restrictions to architectures and profiles stand in sources alone
    let (text, version) = match text.split_once('(') {
        Some((name, version)) => (name, version.split(')').next().unwrap_or_default().trim()),
        None => (text.split(['[', '<']).next().unwrap_or_default(), ""),
    };
    let (name, arch) = match text.trim().split_once(':') {
        Some((name, arch)) => (name, Some(arch)),
        None => (text.trim(), None),
    };
    let (op, version) = match version.as_bytes() {
        [] => (Op::Any, version),
        [b'<', b'<', ..] => (Op::Earlier, &version[2..]),
        [b'<', b'=', ..] => (Op::EarlierEqual, &version[2..]),
        [b'>', b'=', ..] => (Op::LaterEqual, &version[2..]),
        [b'>', b'>', ..] => (Op::Later, &version[2..]),
        [b'=', b'=', ..] => (Op::Equal, &version[2..]),
        [b'=', ..] => (Op::Equal, &version[1..]),
        [b'<', ..] => (Op::EarlierEqual, &version[1..]),
        [b'>', ..] => (Op::LaterEqual, &version[1..]),
        _ => (Op::Equal, version),
    };
    (!name.is_empty()).then_some(Written {
        name,
        arch,
        op,
        version: version.trim(),
        or,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_read_as_they_are_written() {
        let read: Vec<_> = relations("a (>= 1:2~), b:any|c(<<3) , , d [amd64], e (= 1)").collect();
        let one = |name, arch, op, version, or| Written {
            name,
            arch,
            op,
            version,
            or,
        };
        let wanted = [
            one("a", None, Op::LaterEqual, "1:2~", false),
            one("b", Some("any"), Op::Any, "", true),
            one("c", None, Op::Earlier, "3", false),
            one("d", None, Op::Any, "", false),
            one("e", None, Op::Equal, "1", false),
        ];
        assert_eq!(read, wanted);
        assert!(Op::LaterEqual.allows("1:2", "1:2~") && !Op::Earlier.allows("3", "3"));
    }
}
