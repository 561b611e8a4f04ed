//! Debian versions, their order, and the relations between packages (Debian Policy 7.1):
//! `a (>= 1) | b:any, c [amd64]`.

use landfall_model::split_optional;
use std::cmp::Ordering;
use std::fmt;

// Debian versions and their order (Debian Policy 5.6.12; deb-version(7)).

/// Compares two versions by Debian's rules.
pub fn compare(a: &str, b: &str) -> Ordering {
    let ((a_epoch, a_rest), (b_epoch, b_rest)) = (epoch(a), epoch(b));
    let ((a_upstream, a_revision), (b_upstream, b_revision)) = (revision(a_rest), revision(b_rest));
    compare_numbers(a_epoch, b_epoch)
        .then_with(|| compare_parts(a_upstream, b_upstream))
        .then_with(|| compare_parts(a_revision, b_revision))
}

/// Returns the upstream part of a version: without epoch and revision.
pub fn upstream(version: &str) -> &str {
    revision(epoch(version).1).0
}

fn epoch(version: &str) -> (&str, &str) {
    // a version without an epoch has the epoch 0, which compares like an empty number
    version.split_once(':').unwrap_or(("", version))
}

fn revision(version: &str) -> (&str, &str) {
    // splits at the last dash: an upstream version may contain dashes too
    version.rsplit_once('-').unwrap_or((version, ""))
}

/// Compares decimal numbers of any length by value. Some versions are too long for a `u64`.
fn compare_numbers(a: &str, b: &str) -> Ordering {
    let [a, b] = [a, b].map(|text| text.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Compares two upstream versions or two revisions piece by piece: alternately the texts without
/// digits and the numbers.
fn compare_parts(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let ((a_text, a_rest), (b_text, b_rest)) = (
            split(a, |byte| !byte.is_ascii_digit()),
            split(b, |byte| !byte.is_ascii_digit()),
        );
        let ((a_number, a_next), (b_number, b_next)) = (
            split(a_rest, |byte| byte.is_ascii_digit()),
            split(b_rest, |byte| byte.is_ascii_digit()),
        );
        let order = compare_texts(a_text, b_text).then_with(|| compare_numbers(a_number, b_number));
        if order.is_ne() {
            return order;
        }
        (a, b) = (a_next, b_next);
    }
    Ordering::Equal
}

fn split(text: &str, is_part: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !is_part(byte))
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Compares two texts without digits: `~` sorts before the end of the text, the end before letters,
/// and letters before all other characters.
fn compare_texts(a: &str, b: &str) -> Ordering {
    (0..a.len().max(b.len()))
        .map(|at| weight(a, at).cmp(&weight(b, at)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn weight(text: &str, at: usize) -> i32 {
    match text.as_bytes().get(at) {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        // above every letter
        Some(byte) => i32::from(*byte) + 256,
    }
}

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
    let (name, arch) = split_optional(text.trim(), ':');
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
    fn versions_are_in_debians_order() {
        // each list from the lowest to the highest
        for list in [
            &[
                "1.0~rc1",
                "1.0",
                "1.0-1~bpo1",
                "1.0-1",
                "1.0-1+b1",
                "1.0-1.1",
                "1.0-2",
                "1.0+git",
                "1.1",
            ][..],
            &["0.9", "0.10", "1:0.1", "2:0"],
            &["1~~", "1~~a", "1~", "1", "1-0a", "1a", "1+"],
            &["5.4-3", "5.4-3ubuntu1", "5.4-3ubuntu1.10"],
            &[
                "2.4.99",
                "99999999999999999999999.1",
                "100000000000000000000000",
            ],
        ] {
            for (at, low) in list.iter().enumerate() {
                for (above, high) in list.iter().enumerate() {
                    assert_eq!(compare(low, high), at.cmp(&above), "{low} {high}");
                }
            }
        }
        for (a, b) in [("1", "0:1"), ("1.0", "1.00"), ("1", "1-0"), ("1-", "1")] {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} {b}");
        }
    }

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
