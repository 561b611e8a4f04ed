//! What `landfall update` may move a version to.

use super::version::TagVersion;
use super::version_range::TagVersionRange;
use regex::Regex;
use std::cmp::Ordering;
use std::str::FromStr;

/// What a version may move to.
#[derive(Debug, Clone)]
pub enum UpdatePolicy {
    /// It stays.
    Never,
    /// The tag stays, and its new digest is taken.
    Digest,
    /// The first two numbers stay.
    Patch,
    /// The first number stays.
    Minor,
    /// Within a range.
    Range(TagVersionRange),
    /// What matches, by the order of its groups.
    Pattern(Regex),
}

/// A text that is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is no word, range or pattern.
    #[error("`{0}` is no update policy")]
    Unknown(String),
    /// It is no regular expression.
    #[error("`{0}` is no regular expression: {1}")]
    Pattern(String, String),
    /// Nothing in it says what is newer.
    #[error("the pattern `{0}` has no group, so nothing says which version is newer")]
    NoGroup(String),
}

impl PolicyError {
    /// What to write instead.
    pub fn help(&self) -> &'static str {
        match self {
            PolicyError::Unknown(_) => {
                "write patch, minor, digest, never, a range as in \"~1.9\" or \">=1.2 <2\", or a pattern that begins with ^"
            }
            PolicyError::Pattern(..) | PolicyError::NoGroup(_) => {
                r"write a pattern with a group for each number, as in '^v(\d+)\.(\d+)\.(\d+)$'"
            }
        }
    }
}

/// Why a policy says nothing about a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOrdered {
    /// It has no number.
    #[error(
        "`{0}` has no number, so no version can be newer; give it `update: digest`, or a pattern"
    )]
    NoNumber(String),
    /// It does not match the pattern.
    #[error("`{0}` does not match the pattern of its policy, so nothing can be newer")]
    NoMatch(String),
}

impl FromStr for UpdatePolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<UpdatePolicy, PolicyError> {
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
            return range.ok_or_else(|| PolicyError::Unknown(text.into()));
        }
        // a pattern matches the whole tag
        let whole = format!("^(?:{text})$");
        let pattern = Regex::new(&whole)
            .map_err(|error| PolicyError::Pattern(text.into(), last_line(&error.to_string())))?;
        match pattern.captures_len() {
            0 | 1 => Err(PolicyError::NoGroup(text.into())),
            _ => Ok(UpdatePolicy::Pattern(pattern)),
        }
    }
}

/// Why a regular expression is none, without the drawing.
fn last_line(text: &str) -> String {
    text.lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned()
}

impl UpdatePolicy {
    /// Whether it looks for other versions.
    pub fn moves(&self) -> bool {
        !matches!(self, UpdatePolicy::Never | UpdatePolicy::Digest)
    }

    /// Those of `found` to which `current` may move, the newest first. All are newer.
    ///
    /// # Errors
    /// When the policy says nothing about `current`.
    pub fn newer(
        &self,
        current: &str,
        found: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Vec<String>, NotOrdered> {
        if let UpdatePolicy::Pattern(pattern) = self {
            return newer_by_pattern(pattern, current, found);
        }
        if !self.moves() {
            return Ok(Vec::new());
        }
        let version =
            TagVersion::parse(current).ok_or_else(|| NotOrdered::NoNumber(current.to_owned()))?;
        let takes_pre = version.is_prerelease()
            || matches!(self, UpdatePolicy::Range(range) if range.names_prerelease());
        let found = found
            .into_iter()
            .filter_map(|text| TagVersion::parse(text.as_ref()));
        let mut newer: Vec<TagVersion> = found
            .filter(|other| {
                other.shape() == version.shape() && (takes_pre || !other.is_prerelease())
            })
            .filter(|other| {
                other.order(&version) == Ordering::Greater && self.allows(&version, other)
            })
            .collect();
        newer.sort_by(|a, b| b.order(a).then_with(|| a.text().cmp(b.text())));
        Ok(newer
            .into_iter()
            .map(|version| version.text().to_owned())
            .collect())
    }

    /// Those of `found` to which a package may move, in their order; all are newer than `current`,
    /// as its package manager says. A version is given whole, and as upstream calls it.
    ///
    /// # Errors
    /// When the policy says nothing about `current`.
    pub fn allowed_packages<T>(
        &self,
        (current, upstream): (&str, &str),
        found: Vec<T>,
        versions: impl Fn(&T) -> (&str, &str),
    ) -> Result<Vec<T>, NotOrdered> {
        let mut found = found;
        if let UpdatePolicy::Pattern(pattern) = self {
            if !pattern.is_match(current) {
                return Err(NotOrdered::NoMatch(current.to_owned()));
            }
            found.retain(|one| pattern.is_match(versions(one).0));
            return Ok(found);
        }
        // `1.0~rc1` and `1.0~beta` are pre-releases, `1.0~3` is none
        let parse = |text: &str| TagVersion::parse(&text.replace('~', "-"));
        let now = parse(upstream).ok_or_else(|| NotOrdered::NoNumber(current.to_owned()))?;
        let takes_pre = now.is_prerelease()
            || matches!(self, UpdatePolicy::Range(range) if range.names_prerelease());
        found.retain(|one| {
            parse(versions(one).1).is_some_and(|other| {
                (takes_pre || !other.is_prerelease()) && self.allows(&now, &other)
            })
        });
        Ok(found)
    }

    fn allows(&self, version: &TagVersion, other: &TagVersion) -> bool {
        let same = |count: usize| {
            let (one, two) = (version.core(), other.core());
            one.iter().take(count).eq(two.iter().take(count))
        };
        match self {
            UpdatePolicy::Patch => same(2),
            UpdatePolicy::Minor => same(1),
            UpdatePolicy::Range(range) => range.has(other),
            UpdatePolicy::Never | UpdatePolicy::Digest | UpdatePolicy::Pattern(_) => false,
        }
    }
}

fn newer_by_pattern(
    pattern: &Regex,
    current: &str,
    found: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Vec<String>, NotOrdered> {
    let now = groups(pattern, current).ok_or_else(|| NotOrdered::NoMatch(current.to_owned()))?;
    let matching = found.into_iter().filter_map(|text| {
        let groups = groups(pattern, text.as_ref())?;
        (by_groups(&groups, &now) == Ordering::Greater).then(|| (groups, text.as_ref().to_owned()))
    });
    let mut newer: Vec<(Vec<String>, String)> = matching.collect();
    newer.sort_by(|(a, one), (b, two)| by_groups(b, a).then_with(|| one.cmp(two)));
    Ok(newer.into_iter().map(|(_, text)| text).collect())
}

/// What the groups of a pattern match; empty for a group that has no part in it.
fn groups(pattern: &Regex, text: &str) -> Option<Vec<String>> {
    let captures = pattern.captures(text)?;
    let groups = captures.iter().skip(1);
    Some(
        groups
            .map(|group| {
                group
                    .map(|found| found.as_str().to_owned())
                    .unwrap_or_default()
            })
            .collect(),
    )
}

/// Group by group: numbers by their value, texts by the versions in them, and else by their
/// letters.
fn by_groups(one: &[String], other: &[String]) -> Ordering {
    let orders =
        one.iter().zip(other).map(
            |(a, b)| match (TagVersion::parse(a), TagVersion::parse(b)) {
                (Some(x), Some(y)) if x.shape() == y.shape() => x.order(&y),
                _ => a.cmp(b),
            },
        );
    orders
        .into_iter()
        .find(|order| *order != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
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
    fn a_policy_takes_the_newest_of_what_it_allows() {
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
    fn packages_keep_the_order_of_their_manager() {
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
                (current, upstream(current).as_str()),
                found,
                |one: &(String, String)| (one.0.as_str(), one.1.as_str()),
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
        ] {
            assert_eq!(
                allowed(policy, current, found),
                expected,
                "{policy} {current}"
            );
        }
    }

    #[test]
    fn what_follows_is_the_next_lower_one() {
        assert_eq!(
            newer("patch", "1.0.0", "1.0.2 1.0.10 1.0.1"),
            ["1.0.10", "1.0.2", "1.0.1"]
        );
    }

    #[test]
    fn what_says_nothing_about_a_version_is_told() {
        let parse = |text: &str| text.parse::<UpdatePolicy>();
        assert!(matches!(
            parse("patch").unwrap().newer("latest", ["1"]),
            Err(NotOrdered::NoNumber(_))
        ));
        assert!(matches!(
            parse(r"^v(\d+)$").unwrap().newer("1", ["v2"]),
            Err(NotOrdered::NoMatch(_))
        ));
        assert!(matches!(parse("sometimes"), Err(PolicyError::Unknown(_))));
        assert!(matches!(parse(r"^v(\d+$"), Err(PolicyError::Pattern(..))));
        assert!(matches!(parse(r"^v\d+$"), Err(PolicyError::NoGroup(_))));
    }
}
