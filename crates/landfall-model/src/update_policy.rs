//! Update policies: which newer versions `landfall update` may choose.

use crate::Failure;
use crate::version::TagVersion;
use crate::version_range::TagVersionRange;
use jiff::{SignedDuration, Timestamp};
use regex_lite::Regex;
use std::cmp::Ordering;
use std::str::FromStr;

/// Which newer versions `landfall update` may choose for an item.
#[derive(Debug, Clone)]
pub enum UpdatePolicy {
    /// No update: the item keeps its version.
    Never,
    /// The new digest of the same tag.
    Digest,
    /// Versions with the same major and minor number.
    Patch,
    /// Versions with the same major number.
    Minor,
    /// Versions in a range, such as `>=1.2 <2`.
    Range(TagVersionRange),
    /// Versions that match a regular expression. The texts that its groups match determine which
    /// version is newer.
    Pattern(Regex),
}

const PATTERN_HELP: &str =
    r"write a pattern with a group for each number, as in '^v(\d+)\.(\d+)\.(\d+)$'";

/// The failure to order `version`, which contains no number.
pub(crate) fn no_number(version: &str) -> Failure {
    Failure::failed(format!(
        "`{version}` contains no number, so no version can be newer; use `update: digest` or a \
         pattern"
    ))
}

/// The failure to find a newer version than `version`, which contains the hash of a commit.
fn one_commit(version: &str) -> Failure {
    Failure::failed(format!(
        "`{version}` contains the hash of a commit, which no newer version has; use a pattern, as \
         in '^v(\\d+)-g[0-9a-f]+$'"
    ))
}

/// The failure to order `version`, which does not match the pattern.
fn no_match(version: &str) -> Failure {
    Failure::failed(format!(
        "`{version}` does not match the pattern of its policy, so no version can be newer"
    ))
}

impl FromStr for UpdatePolicy {
    type Err = Failure;

    fn from_str(text: &str) -> Result<UpdatePolicy, Failure> {
        match text {
            "never" => return Ok(UpdatePolicy::Never),
            "digest" => return Ok(UpdatePolicy::Digest),
            "patch" => return Ok(UpdatePolicy::Patch),
            "minor" => return Ok(UpdatePolicy::Minor),
            _ => {}
        }
        let is_pattern = text.starts_with('^') && text.contains('(') || text.contains('\\');
        if !is_pattern {
            let range = TagVersionRange::parse(text).map(UpdatePolicy::Range);
            return range.ok_or_else(|| {
                Failure::usage(format!("`{text}` is not an update policy")).with_help(
                    "write patch, minor, digest, never, a range as in \"~1.9\" or \">=1.2 <2\", or a \
                     pattern that begins with ^",
                )
            });
        }
        let pattern = whole_pattern(text).map_err(|error| error.with_help(PATTERN_HELP))?;
        // group 0 is the whole match
        if pattern.captures_len() < 2 {
            let message =
                format!("the pattern `{text}` has no group to determine which version is newer");
            return Err(Failure::usage(message).with_help(PATTERN_HELP));
        }
        Ok(UpdatePolicy::Pattern(pattern))
    }
}

/// Parses a regular expression that must match the whole of a text.
pub(crate) fn whole_pattern(text: &str) -> Result<Regex, Failure> {
    Regex::new(&format!("^(?:{text})$"))
        .map_err(|error| Failure::usage(format!("`{text}` is not a regular expression: {error}")))
}

impl UpdatePolicy {
    /// Whether the policy can allow a version other than the current one.
    pub fn allows_other_versions(&self) -> bool {
        !matches!(self, UpdatePolicy::Never | UpdatePolicy::Digest)
    }

    /// Returns the versions in `found` that the policy allows and that are newer than `current`,
    /// newest first.
    ///
    /// # Errors
    /// Fails if the policy cannot order `current`.
    pub fn newer(
        &self,
        current: &str,
        found: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Vec<String>, Failure> {
        if !self.allows_other_versions() {
            return Ok(Vec::new());
        }
        let current = OrderedVersion::parse(self, current)?;
        if let VersionOrder::Version(version) = &current.order
            && version.has_commit()
        {
            return Err(one_commit(&current.text));
        }
        let mut newer = self.ordered(found);
        newer
            .retain(|other| self.allows_beside(&current, other) && other.compare(&current).is_gt());
        newer.sort_by(OrderedVersion::newest_first);
        Ok(newer.into_iter().map(|version| version.text).collect())
    }

    /// Returns the versions in `found` that the policy can compare.
    pub(crate) fn ordered(
        &self,
        found: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Vec<OrderedVersion> {
        let found = found.into_iter();
        found
            .filter_map(|text| OrderedVersion::parse(self, text.as_ref()).ok())
            .collect()
    }

    /// Whether the policy allows `other` in place of `current` or beside it, newer or older.
    pub(crate) fn allows_beside(&self, current: &OrderedVersion, other: &OrderedVersion) -> bool {
        match (&current.order, &other.order) {
            (VersionOrder::Version(current), VersionOrder::Version(other)) => {
                other.shape() == current.shape()
                    && other.is_dev_variant() == current.is_dev_variant()
                    && (self.allows_prerelease(current) || !other.is_prerelease())
                    && self.allows(current, other)
            }
            // a pattern allows every version that it matches
            _ => true,
        }
    }

    /// Returns the package versions in `newer` that the policy allows, in the order of `newer`.
    ///
    /// `newer` contains only versions that the package manager considers newer than `current`.
    ///
    /// # Errors
    /// Fails if the policy cannot order `current`.
    pub fn allowed_packages<T>(
        &self,
        current: PackageVersion<'_>,
        mut newer: Vec<T>,
        version: impl Fn(&T) -> PackageVersion<'_>,
    ) -> Result<Vec<T>, Failure> {
        if let UpdatePolicy::Pattern(pattern) = self {
            if !pattern.is_match(current.full) {
                return Err(no_match(current.full));
            }
            newer.retain(|package| pattern.is_match(version(package).full));
            return Ok(newer);
        }
        if !self.allows_other_versions() {
            return Ok(Vec::new());
        }
        let now = parse_upstream(current.upstream).ok_or_else(|| no_number(current.full))?;
        let allows_prerelease = self.allows_prerelease(&now);
        newer.retain(|package| {
            parse_upstream(version(package).upstream).is_some_and(|other| {
                (allows_prerelease || !other.is_prerelease()) && self.allows(&now, &other)
            })
        });
        Ok(newer)
    }

    /// Whether a pre-release may follow `version`.
    fn allows_prerelease(&self, version: &TagVersion) -> bool {
        version.is_prerelease()
            || matches!(self, UpdatePolicy::Range(range) if range.names_prerelease())
    }

    fn allows(&self, version: &TagVersion, other: &TagVersion) -> bool {
        match self {
            UpdatePolicy::Patch => version
                .core()
                .iter()
                .take(2)
                .eq(other.core().iter().take(2)),
            UpdatePolicy::Minor => version.core().first() == other.core().first(),
            UpdatePolicy::Range(range) => range.has(other),
            UpdatePolicy::Never | UpdatePolicy::Digest | UpdatePolicy::Pattern(_) => false,
        }
    }
}

/// The version of a package.
#[derive(Debug, Clone, Copy)]
pub struct PackageVersion<'v> {
    /// The version with epoch and revision, as in `1:1.7.24-1`.
    pub full: &'v str,
    /// The version of the packaged software, as in `1.7.24`.
    pub upstream: &'v str,
}

/// Parses an upstream version of a package. In packages `~` precedes a pre-release, as in
/// `1.0~rc1`; a number after `~`, as in `1.0~3`, is not a pre-release.
fn parse_upstream(text: &str) -> Option<TagVersion> {
    TagVersion::parse(&text.replace('~', "-"))
}

/// A version, parsed for the comparison with other versions by the same policy.
pub(crate) struct OrderedVersion {
    pub(crate) text: String,
    pub(crate) order: VersionOrder,
}

pub(crate) enum VersionOrder {
    Version(TagVersion),
    /// The texts that the groups (in parentheses) of the policy's pattern match.
    Groups(Vec<String>),
}

impl OrderedVersion {
    pub(crate) fn parse(policy: &UpdatePolicy, text: &str) -> Result<OrderedVersion, Failure> {
        let order = match policy {
            UpdatePolicy::Pattern(pattern) => groups(pattern, text)
                .map(VersionOrder::Groups)
                .ok_or_else(|| no_match(text)),
            _ => TagVersion::parse(text)
                .map(VersionOrder::Version)
                .ok_or_else(|| no_number(text)),
        };
        Ok(OrderedVersion {
            text: text.to_owned(),
            order: order?,
        })
    }

    pub(crate) fn compare(&self, other: &OrderedVersion) -> Ordering {
        match (&self.order, &other.order) {
            (VersionOrder::Version(one), VersionOrder::Version(other)) => one.order(other),
            (VersionOrder::Groups(one), VersionOrder::Groups(other)) => compare_groups(one, other),
            // a policy parses all versions to the same variant
            _ => Ordering::Equal,
        }
    }

    /// The order of a list that begins with the newest version.
    pub(crate) fn newest_first(&self, other: &OrderedVersion) -> Ordering {
        other.compare(self).then_with(|| self.text.cmp(&other.text))
    }
}

/// The texts that the groups of `pattern` match, an empty text for a group without a match. `None`
/// if `text` does not match `pattern`.
fn groups(pattern: &Regex, text: &str) -> Option<Vec<String>> {
    let captures = pattern.captures(text)?;
    let groups = captures.iter().skip(1);
    Some(
        groups
            .map(|group| group.map_or("", |found| found.as_str()).to_owned())
            .collect(),
    )
}

/// Compares group by group. This is a total order of the texts.
pub(crate) fn compare_groups(one: &[String], other: &[String]) -> Ordering {
    let mut orders = one.iter().zip(other).map(|(a, b)| compare_group(a, b));
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Compares the versions in two texts, and their [shapes](TagVersion::shape) if the versions are
/// equal. A text without a number precedes all texts with one, so that `latest` is never newer than
/// a version.
fn compare_group(a: &str, b: &str) -> Ordering {
    match (TagVersion::parse(a), TagVersion::parse(b)) {
        (Some(x), Some(y)) => x.order(&y).then_with(|| x.shape().cmp(y.shape())),
        (None, None) => a.cmp(b),
        (x, y) => x.is_some().cmp(&y.is_some()),
    }
}

const HOUR: i64 = 3600;
/// The longest age, 10 years: a longer one is probably a typing error, and is refused.
const MOST_HOURS: i64 = 24 * 3650;

/// A time in hours, days or weeks, as in `12h`, `7d` or `2w`. `0d` means that no version has to
/// wait.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{text}")]
pub struct MinimumAge {
    hours: i64,
    text: String,
}

impl MinimumAge {
    /// Whether the age is zero, so that no version has to wait.
    pub fn is_zero(&self) -> bool {
        self.hours == 0
    }

    /// Returns the time from which `landfall update` may choose a version that was first seen at
    /// `seen`.
    pub fn end(&self, seen: Timestamp) -> Timestamp {
        seen.saturating_add(SignedDuration::from_secs(self.hours * HOUR))
            .unwrap_or(Timestamp::MAX)
    }
}

impl FromStr for MinimumAge {
    type Err = Failure;

    fn from_str(text: &str) -> Result<MinimumAge, Failure> {
        let bad = || {
            Failure::usage(format!(
                "`{text}` is not an age: write a number with h, d or w, as in 12h, 7d or 2w (at \
                 most 3650d)"
            ))
        };
        let factor = match text.as_bytes().last() {
            Some(b'h') => 1,
            Some(b'd') => 24,
            Some(b'w') => 24 * 7,
            _ => return Err(bad()),
        };
        let digits = &text[..text.len() - 1];
        // `parse` would also accept a sign
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let hours = digits
            .parse::<i64>()
            .ok()
            .and_then(|number| number.checked_mul(factor))
            .filter(|hours| *hours <= MOST_HOURS)
            .ok_or_else(bad)?;
        Ok(MinimumAge {
            hours,
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newer(policy: &str, current: &str, found: &str) -> Vec<String> {
        policy
            .parse::<UpdatePolicy>()
            .unwrap()
            .newer(current, found.split_whitespace())
            .unwrap()
    }

    #[test]
    fn a_policy_selects_the_newest_allowed_version() {
        for (policy, current, found, first) in [
            (
                "patch",
                "v1.33.4",
                "v1.33.5 v1.33.10 v1.34.0 v1.33.11-rc.1 v1.33.4",
                Some("v1.33.10"),
            ),
            (
                "minor",
                "1.27.3-alpine3.20",
                "1.28.0 1.28.0-alpine3.20 1.28.0-alpine3.21 2.0.0-alpine3.21",
                Some("1.28.0-alpine3.21"),
            ),
            ("minor", "1.27", "1.28 1.29.1 2.0", Some("1.28")),
            ("~1.9", "v1.9.0", "v1.9.1 v1.10.0", Some("v1.9.1")),
            ("~1.9", "v1.8.0", "v1.8.9 v1.9.1 v1.10.0", Some("v1.9.1")),
            ("^2", "2.0.0", "2.0.0 1.9.9", None),
            (
                "*",
                "2024-01-15",
                "2024-02-01 2023-12-31 20240301",
                Some("2024-02-01"),
            ),
            (
                "*",
                "RELEASE.2024-01-16T16-07-38Z",
                "RELEASE.2024-01-18T22-51-28Z RELEASE.2023-12-23T07-19-11Z",
                Some("RELEASE.2024-01-18T22-51-28Z"),
            ),
            (
                "patch",
                "v1.2.0-rc.1",
                "v1.2.0-rc.2 v1.2.0 v1.1.9",
                Some("v1.2.0"),
            ),
            (
                ">=1.2.0-alpha.1 <1.3",
                "1.1.0",
                "1.2.0-rc.1 1.1.5",
                Some("1.2.0-rc.1"),
            ),
            (
                "patch",
                "v1.30.0-rke2r1",
                "v1.30.0-rke2r2 v1.30.1-rke2r1 v1.30.2",
                Some("v1.30.1-rke2r1"),
            ),
            (
                r"^v(\d+)\.(\d+)\.(\d+)-rke2r(\d+)$",
                "v1.9.9-rke2r9",
                "v1.30.0-rke2r10 v1.30.0-rke2r9 v1.30.1",
                Some("v1.30.0-rke2r10"),
            ),
            (
                r"^jdk-(\d+)_(\d+)$",
                "jdk-11_9",
                "jdk-11_10 jdk-9_99",
                Some("jdk-11_10"),
            ),
            (
                "patch",
                "2.14.2-pg15",
                "2.14.3-pg16 2.14.3-pg15 2.14.4-pg16 2.14.3",
                Some("2.14.3-pg15"),
            ),
            (
                "patch",
                "3.9.7-eclipse-temurin-17-alpine",
                "3.9.8-eclipse-temurin-21-alpine 3.9.8-eclipse-temurin-17",
                None,
            ),
            (
                "minor",
                "2.9.1-python3.11.3",
                "2.10.0-python3.12.1 2.9.1-python3.11.4",
                Some("2.9.1-python3.11.4"),
            ),
            (
                "patch",
                "pg14-v0.2.0",
                "pg16-v0.2.0 pg14-v0.2.1 pg16-v0.2.1",
                Some("pg14-v0.2.1"),
            ),
            // a channel of the images of Ubuntu
            (
                "*",
                "5.2-22.04_beta",
                "6.10-24.10_edge 6.6-24.04_beta",
                Some("6.6-24.04_beta"),
            ),
            // `-dev` without a number is a variant with a shell and compilers
            (
                "patch",
                "1.27.3-dev",
                "1.27.3 1.27.4 1.27.4-dev 1.28.0-dev",
                Some("1.27.4-dev"),
            ),
            ("*", "1.27.3-dev", "1.27.3 1.27.4", None),
            (">=1.27.0-0", "1.27.3", "1.27.4-dev", None),
            ("patch", "3.1-dev1", "3.1-dev2 3.1", Some("3.1")),
            ("never", "1.0.0", "2.0.0", None),
            ("digest", "1.0.0", "2.0.0", None),
        ] {
            assert_eq!(
                newer(policy, current, found).first().map(String::as_str),
                first,
                "{policy} {current}"
            );
        }
    }

    #[test]
    fn a_version_with_the_hash_of_a_commit_needs_a_pattern() {
        for version in [
            "v20230407-g1a2b3c4",
            "main-20240115-8b53cabe0",
            "1.9.0_1a2b3c4d",
        ] {
            let policy: UpdatePolicy = "*".parse().unwrap();
            let error = policy.newer(version, [version]).unwrap_err();
            assert!(error.to_string().contains("hash of a commit"), "{error}");
        }
        let found = newer(
            r"^v(\d+)-g[0-9a-f]+$",
            "v20230407-g1a2b3c4",
            "v20230408-g2b3c4d5 v20230409",
        );
        assert_eq!(found, ["v20230408-g2b3c4d5"]);
        assert_eq!(newer("*", "20240115", "20240116"), ["20240116"]);
    }

    #[test]
    fn a_policy_selects_package_versions_and_keeps_their_order() {
        let allowed = |policy: &str, current: &str, found: &str| {
            let upstream = |text: &'_ str| {
                text.split_once('-')
                    .map_or(text, |(first, _)| first)
                    .to_owned()
            };
            let found = found
                .split_whitespace()
                .map(|one| (one.to_owned(), upstream(one)))
                .collect();
            let policy = policy.parse::<UpdatePolicy>().unwrap();
            let found = policy.allowed_packages(
                PackageVersion {
                    full: current,
                    upstream: &upstream(current),
                },
                found,
                |(full, upstream): &(String, String)| PackageVersion { full, upstream },
            );
            found
                .unwrap()
                .into_iter()
                .map(|(whole, _)| whole)
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (policy, current, found, expected) in [
            (
                "patch",
                "1.7.24-1",
                "2.0.1-1 1.7.26~rc.1-1 1.7.25-2 1.7.25-1",
                "1.7.25-2 1.7.25-1",
            ),
            (
                "patch",
                "20.10.7~3-0~u",
                "20.11.0~3-0~u 20.10.9~3-0~u",
                "20.10.9~3-0~u",
            ),
            ("*", "1.7.24-1", "2.0.1-1 1.7.25-1", "2.0.1-1 1.7.25-1"),
            ("~1.7", "1.7.24-1", "2.0.1-1 1.7.25-1", "1.7.25-1"),
            ("*", "1.0~rc1-1", "1.0~rc2-1", "1.0~rc2-1"),
            (
                r"^1\.7\.(\d+)-1$",
                "1.7.24-1",
                "2.0.1-1 1.7.26-2 1.7.25-1",
                "1.7.25-1",
            ),
            ("never", "1.7.24-1", "1.7.25-1", ""),
            ("never", "edge", "1.7.25-1", ""),
        ] {
            assert_eq!(
                allowed(policy, current, found),
                expected,
                "{policy} {current}"
            );
        }
    }

    #[test]
    fn newer_versions_are_sorted_newest_first() {
        assert_eq!(
            newer("patch", "1.0.0", "1.0.2 1.0.10 1.0.1"),
            ["1.0.10", "1.0.2", "1.0.1"]
        );
    }

    #[test]
    fn groups_of_different_shapes_have_one_order() {
        let expected = ["v10", "v9", "v2.0", "v1.0-rc1", "v1x", "v1-alpine"];
        for found in [
            "v9 v10 v1x v2.0 vedge v1-alpine v1.0-rc1 v0",
            "v1.0-rc1 v1x v1-alpine v10 v0 vedge v2.0 v9",
        ] {
            assert_eq!(newer("^v(.+)$", "v1", found), expected);
        }
        assert!(newer("^v(.+)$", "v9", "vlatest v").is_empty());
        assert_eq!(newer("^v(.+)$", "vlatest", "v9"), ["v9"]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            cases: 4000,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn the_order_of_groups_is_total(
            a in "[019a.-]{0,4}(rc|x)?[01]?",
            b in "[019a.-]{0,4}(rc|x)?[01]?",
            c in "[019a.-]{0,4}(rc|x)?[01]?",
        ) {
            let mut sorted = [a, b, c];
            sorted.sort_by(|one, other| compare_group(one, other));
            for i in 0..3 {
                for j in 0..3 {
                    let order = compare_group(&sorted[i], &sorted[j]);
                    assert_eq!(order, compare_group(&sorted[j], &sorted[i]).reverse());
                    assert!(i > j || order.is_le(), "{sorted:?}");
                }
            }
        }
    }

    #[test]
    fn invalid_and_inapplicable_policies_are_rejected() {
        let parse = |text: &str| text.parse::<UpdatePolicy>();
        assert_eq!(
            parse("patch").unwrap().newer("latest", ["1"]),
            Err(no_number("latest"))
        );
        assert_eq!(
            parse(r"^v(\d+)$").unwrap().newer("1", ["v2"]),
            Err(no_match("1"))
        );
        for (text, why) in [
            ("sometimes", "is not an update policy"),
            (r"^v(\d+$", "is not a regular expression"),
            (r"^v\d+$", "has no group"),
        ] {
            let message = &parse(text).unwrap_err().message;
            assert!(message.contains(why), "{message}");
        }
    }

    #[test]
    fn an_age_is_hours_days_or_weeks() {
        let seen: Timestamp = "2026-11-01T10:00:00Z".parse().unwrap();
        for (text, end) in [
            ("0d", "2026-11-01T10:00:00Z"),
            ("12h", "2026-11-01T22:00:00Z"),
            ("7d", "2026-11-08T10:00:00Z"),
            ("2w", "2026-11-15T10:00:00Z"),
        ] {
            let age: MinimumAge = text.parse().unwrap();
            assert_eq!(age.end(seen).to_string(), end, "{text}");
            assert_eq!(
                (age.to_string(), age.is_zero()),
                (text.into(), text == "0d")
            );
        }
        let longest: MinimumAge = "3650d".parse().unwrap();
        assert_eq!(longest.end(Timestamp::MAX), Timestamp::MAX);
        for bad in [
            "",
            "7",
            "d",
            "-1d",
            "+1d",
            "1.5d",
            "3651d",
            "9999999999999999999w",
            "1y",
            "ä",
        ] {
            assert!(bad.parse::<MinimumAge>().is_err(), "{bad}");
        }
    }
}
