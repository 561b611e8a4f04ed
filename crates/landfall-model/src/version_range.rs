//! Version ranges of update policies: `~1.9`, `^2`, `>=1.2 <2`, `1.x`, `*`, and alternatives with
//! `||`.

use crate::update_policy::{OrderedVersion, VersionOrder, compare_groups, no_number};
use crate::version::{TagVersion, VersionNumber};
use crate::{Failure, UpdatePolicy};
use std::cmp::Ordering;

/// A range of tag versions. It compares only their [core](TagVersion::core), unless a limit is a
/// pre-release or has a build number: `>=3.5.4-0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagVersionRange {
    alternatives: Vec<Vec<Bound>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    operator: Operator,
    /// The limit, or `None` for any version.
    version: Option<TagVersion>,
    /// Whether the limit has a build number, which Semantic Versioning reads as a pre-release.
    has_build: bool,
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
    pub(crate) fn names_prerelease(&self) -> bool {
        let mut bounds = self.alternatives.iter().flatten();
        bounds.any(|bound| {
            let version = bound.version.as_ref();
            bound.names_build() || version.is_some_and(TagVersion::is_prerelease)
        })
    }

    /// Whether a limit of the range has a build number, so that the range allows them: `3.5.4-0`.
    pub fn names_build(&self) -> bool {
        self.alternatives.iter().flatten().any(Bound::names_build)
    }

    /// Whether a lower limit of the range is a single number after the next one of `major`, such as
    /// a date.
    pub(crate) fn begins_beyond(&self, major: &VersionNumber) -> bool {
        self.alternatives.iter().flatten().any(|bound| {
            let core = bound.version.as_ref().map(TagVersion::core);
            let is_beyond = matches!(
                core.as_deref(),
                Some([number]) if !number.is_at_most_next_of(major)
            );
            is_beyond && !matches!(bound.operator, Operator::AtMost | Operator::Below)
        })
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
                has_build: false,
            });
        }
        let version = TagVersion::parse(rest)?;
        let is_plain = rest.starts_with(|c: char| c.is_ascii_digit())
            && rest
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
        // n numbers with dots between them have a shape of 2n - 1 characters; a pre-release is not
        // part of the shape
        let without_build = version.shape_without_build();
        let is_core = without_build.len() + 1 == 2 * version.core().len();
        let has_build = without_build.len() < version.shape().len();
        (is_plain && is_core).then_some(Bound {
            operator,
            version: Some(version),
            has_build,
        })
    }

    /// Whether the limit allows build numbers. `<2.0.0-0` only excludes the pre-releases of 2.0.0.
    fn names_build(&self) -> bool {
        self.has_build && self.operator != Operator::Below
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
        if order == Ordering::Equal && core.len() == limit.len() {
            if self.has_build && version.shape_without_build() == version.shape() {
                // without a build number, a version is newer (semver.org, 11)
                order = Ordering::Greater;
            } else if self.has_build || bound.is_prerelease() {
                order = version.order(bound);
            }
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

// Groups versions into release lines, so that an update can keep several versions at once.

/// How many numbers of a version identify its release line, unless the policy is `patch`.
const LINE_NUMBERS: usize = 2;

impl OrderedVersion {
    /// Whether both versions belong to the same release line.
    fn is_beside(&self, other: &OrderedVersion, policy: &UpdatePolicy) -> bool {
        match (&self.order, &other.order) {
            // the policy `patch` has a line for each patch version
            _ if matches!(policy, UpdatePolicy::Patch) => self.compare(other) == Ordering::Equal,
            (VersionOrder::Version(one), VersionOrder::Version(other)) => {
                let one = one.core().into_iter().take(LINE_NUMBERS);
                one.eq(other.core().into_iter().take(LINE_NUMBERS))
            }
            (VersionOrder::Groups(one), VersionOrder::Groups(other))
                if one.len() > LINE_NUMBERS =>
            {
                compare_groups(&one[..LINE_NUMBERS], &other[..LINE_NUMBERS]) == Ordering::Equal
            }
            _ => self.compare(other) == Ordering::Equal,
        }
    }
}

impl UpdatePolicy {
    /// Returns the release lines (such as `1.33`) of `found` and `current`, and the versions of each
    /// line, the newest first. A line contains the found versions that the policy allows for the
    /// newest of `current`. If a line contains current versions, it ends with the newest of them.
    ///
    /// # Errors
    /// Fails if the policy cannot order one of `current`, or `current` is empty.
    pub fn release_lines(
        &self,
        current: &[String],
        found: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Vec<Vec<String>>, Failure> {
        let mut versions = Vec::new();
        for text in current {
            versions.push(OrderedVersion::parse(self, text)?);
        }
        let newest = versions.iter().max_by(|one, other| one.compare(other));
        let newest = newest.ok_or_else(|| no_number(""))?;
        let mut allowed = self.ordered(found);
        allowed.retain(|one| self.allows_beside(newest, one) && !current.contains(&one.text));
        versions.append(&mut allowed);
        versions.sort_by(OrderedVersion::newest_first);
        versions.dedup_by(|one, other| one.text == other.text);
        let lines = versions.chunk_by(|one, other| one.is_beside(other, self));
        Ok(lines
            .map(|line| {
                let texts = line.iter().map(|one| one.text.clone());
                let mut texts: Vec<String> = texts.collect();
                // a version below a current one would be a downgrade
                if let Some(at) = texts.iter().position(|text| current.contains(text)) {
                    texts.truncate(at + 1);
                }
                texts
            })
            .collect())
    }

    /// Whether `versions` has several versions, from the newest to the oldest.
    pub fn is_descending(&self, versions: &[String]) -> bool {
        let ordered: Result<Vec<OrderedVersion>, Failure> = versions
            .iter()
            .map(|text| OrderedVersion::parse(self, text))
            .collect();
        ordered.is_ok_and(|ordered| {
            ordered.len() > 1 && ordered.is_sorted_by(|one, next| one.compare(next).is_ge())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            (
                ">= v3.5.4-1",
                &[
                    "3.5.4-1",
                    "v3.5.4-10",
                    "3.5.4",
                    "3.5.4-rc.1",
                    "3.6.0-0",
                    "3.6.0",
                ],
                &["3.5.4-0", "3.5.3-2", "3.5.3"],
            ),
            (
                ">=1.2 <2.0.0-0",
                &["1.2.0", "1.9.9-3"],
                &["2.0.0-0", "2.0.0-rc.1", "2.0.0"],
            ),
            ("~3.5.4-1", &["3.5.4-1", "3.5.9-0"], &["3.5.4-0", "3.6.0-0"]),
            ("3.5.4-1", &["3.5.4-1"], &["3.5.4-0", "3.5.4"]),
        ] {
            for version in inside {
                assert!(has(range, version), "{range} has {version}");
            }
            for version in outside {
                assert!(!has(range, version), "{range} does not have {version}");
            }
        }
        for bad in [
            "",
            "latest",
            "~",
            ">=a",
            "^1-alpine",
            "1..2",
            ">=1.2 ||",
            ">=1.2-0-1",
            ">=1-0.1",
        ] {
            assert_eq!(TagVersionRange::parse(bad), None, "{bad}");
        }
    }

    fn lines(policy: &str, current: &[&str], found: &[&str]) -> Vec<Vec<String>> {
        let policy: UpdatePolicy = policy.parse().unwrap();
        let current: Vec<String> = current.iter().map(|text| (*text).to_owned()).collect();
        policy.release_lines(&current, found).unwrap()
    }

    #[test]
    fn the_policy_decides_whether_lines_are_minor_or_patch_versions() {
        let found = [
            "v1.31.8",
            "v1.31.9",
            "v1.32.4",
            "v1.32.5",
            "v1.33.3",
            "v1.33.4",
            "v1.34.0-rc.1",
            "v1.34.0",
            "v2.0.0",
            "v1.33.4-debug",
            "latest",
        ];
        assert_eq!(
            lines("minor", &["v1.32.4", "v1.33.4"], &found),
            [
                &["v1.34.0"][..],
                &["v1.33.4"],
                &["v1.32.5", "v1.32.4"],
                &["v1.31.9", "v1.31.8"],
            ]
        );
        assert_eq!(
            lines("patch", &["v1.33.3"], &found),
            [["v1.33.4"], ["v1.33.3"]]
        );
        assert_eq!(lines("*", &["v1.33.4"], &found)[0], ["v2.0.0"]);
        // a current version that the policy does not allow still has a line
        assert_eq!(
            lines("~1.33", &["v1.30.1", "v1.33.4"], &found),
            [["v1.33.4"], ["v1.30.1"]]
        );
        let rke2 = r"^v(\d+)\.(\d+)\.(\d+)-rke2r(\d+)$";
        let found = [
            "v1.33.4-rke2r1",
            "v1.33.4-rke2r2",
            "v1.32.9-rke2r1",
            "v1.33.4",
        ];
        assert_eq!(
            lines(rke2, &["v1.33.4-rke2r1"], &found),
            [
                &["v1.33.4-rke2r2", "v1.33.4-rke2r1"][..],
                &["v1.32.9-rke2r1"]
            ]
        );
        let policy: UpdatePolicy = "minor".parse().unwrap();
        assert!(policy.release_lines(&["stable".into()], ["1.0.0"]).is_err());
        assert!(policy.release_lines(&[], ["1.0.0"]).is_err());
    }

    #[test]
    fn only_several_versions_from_newest_to_oldest_are_descending() {
        let policy: UpdatePolicy = "minor".parse().unwrap();
        for (versions, is_descending) in [
            (&["v1.33.5", "v1.33.4"][..], true),
            (&["v1.33.4", "v1.33.5"], false),
            (&["v1.34.0", "v1.33.5", "v1.33.4"], true),
            (&["v1.34.0", "v1.33.4", "v1.33.5"], false),
            (&["v1.33.4"], false),
            (&["v1.33.4", "stable"], false),
        ] {
            let versions: Vec<String> = versions.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(
                policy.is_descending(&versions),
                is_descending,
                "{versions:?}"
            );
        }
    }

    fn version() -> impl Strategy<Value = String> {
        (0..3_u8, 0..4_u8, 0..4_u8).prop_map(|(a, b, c)| format!("{a}.{b}.{c}"))
    }

    proptest! {
        #[test]
        fn release_lines_are_ordered_and_contain_the_newest_current_versions(
            policy in prop_oneof![Just("patch"), Just("minor"), Just("*"), Just(">=1 <2")],
            current in proptest::collection::btree_set(version(), 1..4),
            found in proptest::collection::vec(version(), 0..20),
        ) {
            let parsed: UpdatePolicy = policy.parse().unwrap();
            let current: Vec<String> = current.into_iter().collect();
            let lines = parsed.release_lines(&current, &found).unwrap();
            let flat = lines.concat();
            let ordered = |text: &String| TagVersion::parse(text).unwrap();
            // strictly descending, without repetition
            for pair in flat.windows(2) {
                prop_assert_eq!(ordered(&pair[0]).order(&ordered(&pair[1])), Ordering::Greater);
            }
            // each current version is listed, unless a newer version of its line is current too
            let line = |text: &str| {
                let numbers = if policy == "patch" { 3 } else { 2 };
                text.split('.').take(numbers).map(str::to_owned).collect::<Vec<_>>()
            };
            for one in &current {
                let newer = current.iter().any(|other| {
                    line(other) == line(one)
                        && ordered(other).order(&ordered(one)) == Ordering::Greater
                });
                prop_assert_eq!(flat.contains(one), !newer);
            }
            // each version was found or is current, and all versions of a line share its numbers
            for versions in &lines {
                prop_assert!(versions.iter().all(|one| line(one) == line(&versions[0])));
                prop_assert!(versions.iter().all(|one| found.contains(one) || current.contains(one)));
            }
            // the order in which versions are found does not matter
            let reversed = parsed.release_lines(&current, found.iter().rev()).unwrap();
            prop_assert_eq!(lines, reversed);
        }
    }
}
