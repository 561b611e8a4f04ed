//! Selects versions by a rule alone, without a current version: the value of `select` in a
//! manifest.

use crate::update_policy::{OrderedVersion, whole_pattern};
use crate::version::{TagVersion, VersionNumber, is_numbers};
use crate::version_range::TagVersionRange;
use crate::{Failure, UpdatePolicy};
use regex_lite::Regex;
use std::cmp::Ordering;
use std::str::FromStr;

/// Which of the versions of an item are selected.
#[derive(Debug, Clone)]
pub struct VersionSelection {
    policy: UpdatePolicy,
    except: Vec<Exception>,
}

/// Versions that are not selected.
#[derive(Debug, Clone)]
enum Exception {
    Version(String),
    Pattern(Regex),
}

impl VersionSelection {
    /// Parses `select`, a range or a pattern as in [`UpdatePolicy`].
    ///
    /// # Errors
    /// If it is another policy, or not valid.
    pub fn new(select: &str) -> Result<VersionSelection, Failure> {
        let policy = UpdatePolicy::from_str(select)?;
        if !matches!(policy, UpdatePolicy::Range(_) | UpdatePolicy::Pattern(_)) {
            let message = format!("`{select}` selects nothing without a current version");
            let help = "write a range as in \">=1.2 <2\" or \"*\", or a pattern that begins with ^";
            return Err(Failure::usage(message).with_help(help));
        }
        Ok(VersionSelection {
            policy,
            except: Vec::new(),
        })
    }

    /// Excludes a version, or with a leading `^` all versions that match a regular expression as a
    /// whole.
    ///
    /// # Errors
    /// If the expression is not valid.
    pub fn exclude(&mut self, text: &str) -> Result<(), Failure> {
        let exception = if text.starts_with('^') {
            Exception::Pattern(whole_pattern(text)?)
        } else {
            Exception::Version(text.to_owned())
        };
        self.except.push(exception);
        Ok(())
    }

    /// Whether versions with a build number are selected, too: `3.5.4-0`.
    pub fn names_build(&self) -> bool {
        matches!(&self.policy, UpdatePolicy::Range(range) if range.names_build())
    }

    /// The selected versions of `found`, the newest first.
    ///
    /// A range selects plain versions only: numbers with dots, with or without a leading `v`, and
    /// with a build number such as `3.5.4-0` if a limit of the range has one. A
    /// version of one or two numbers with which another one begins, such as `1.28` beside `1.28.3`,
    /// is a tag that moves, and is left out. So is a single number after the next major version,
    /// such as `20240606` beside `3.20.0`: a date, the number of a build or the hash of a commit. It
    /// is selected if the range begins with such a number. Of `1.28.3` and `v1.28.3`, the form of
    /// the newest version counts.
    pub fn newest(&self, found: impl IntoIterator<Item = String>) -> Vec<String> {
        let found = found.into_iter().filter(|version| !self.excepts(version));
        match &self.policy {
            UpdatePolicy::Range(range) => newest_in(range, found),
            policy => {
                let mut versions = policy.ordered(found);
                versions.sort_by(OrderedVersion::newest_first);
                versions.into_iter().map(|version| version.text).collect()
            }
        }
    }

    fn excepts(&self, version: &str) -> bool {
        self.except.iter().any(|exception| match exception {
            Exception::Version(text) => text == version,
            Exception::Pattern(pattern) => pattern.is_match(version),
        })
    }
}

fn newest_in(range: &TagVersionRange, found: impl Iterator<Item = String>) -> Vec<String> {
    let names_build = range.names_build();
    let is_plain = |version: &TagVersion| {
        is_numbers(version.shape()) || names_build && is_numbers(version.shape_without_build())
    };
    let mut versions: Vec<TagVersion> = found
        .filter_map(|text| TagVersion::parse(&text))
        .filter(is_plain)
        .collect();
    let dotted = versions.iter().map(TagVersion::core);
    let newest_major = dotted
        .filter(|core| core.len() > 1)
        .filter_map(|core| core.first().copied().cloned())
        .max();
    versions.retain(|version| match (&version.core()[..], &newest_major) {
        ([number], Some(major)) => number.is_at_most_next_of(major) || range.begins_beyond(major),
        _ => true,
    });
    let mut versions: Vec<TagVersion> = versions
        .into_iter()
        .filter(|version| range.names_prerelease() || !version.is_prerelease())
        .filter(|version| range.has(version))
        .collect();
    versions.sort_by(newest_first);
    let cores: Vec<Vec<&VersionNumber>> = versions.iter().map(TagVersion::core).collect();
    let moves = |at: usize| {
        let core = &cores[at];
        // versions that begin with the same numbers are neighbours
        let begins_alike = |other: &&Vec<&VersionNumber>| other.starts_with(core);
        let before = cores[..at].iter().rev().take_while(begins_alike);
        let after = cores[at + 1..].iter().take_while(begins_alike);
        core.len() < 3 && before.chain(after).any(|other| other.len() > core.len())
    };
    let form = versions.first().map(|newest| newest.shape().to_owned());
    let mut kept: Vec<&TagVersion> = Vec::new();
    for version in (0..versions.len())
        .filter(|at| !moves(*at))
        .map(|at| &versions[at])
    {
        match kept.last_mut() {
            Some(last) if last.order(version) == Ordering::Equal => {
                if form.as_deref() == Some(version.shape()) {
                    *last = version;
                }
            }
            _ => kept.push(version),
        }
    }
    kept.iter()
        .map(|version| version.text().to_owned())
        .collect()
}

fn newest_first(one: &TagVersion, other: &TagVersion) -> Ordering {
    other.order(one).then_with(|| one.text().cmp(other.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(select: &str, except: &[&str], found: &str) -> String {
        let mut selection = VersionSelection::new(select).unwrap();
        for text in except {
            selection.exclude(text).unwrap();
        }
        let found = found.split_whitespace().map(str::to_owned);
        selection.newest(found).join(" ")
    }

    #[test]
    fn a_rule_selects_the_newest_versions_of_one_form() {
        let found =
            "latest v1.7.0 v1.8.0 v1.8.2 v1.9.1 v1.9.0 v1.10.0-rc.0 v2.0.0 1.9.1-alpine sha-1";
        for (select, except, found, expected) in [
            (">=1.8 <2", &[][..], found, "v1.9.1 v1.9.0 v1.8.2 v1.8.0"),
            (">=1.8 <2", &["v1.9.1", "^v1\\.8\\..*"], found, "v1.9.0"),
            ("*", &[], found, "v2.0.0 v1.9.1 v1.9.0 v1.8.2 v1.8.0 v1.7.0"),
            (">=1.10.0-rc.0", &[], found, "v2.0.0 v1.10.0-rc.0"),
            ("^3", &[], found, ""),
            (
                ">= v3.5.4-0",
                &[],
                "3.5.3-0 3.5.4-0 3.5.10-0 3.5.4-1 3.6.0-rc.1 v3.6.4-0 3.6.4-0 3.5.4-0-arm64 3.5-alpine",
                "3.6.4-0 3.6.0-rc.1 3.5.10-0 3.5.4-1 3.5.4-0",
            ),
            (
                ">=3.5 <4.0.0-0",
                &[],
                "3.5.4-0 3.5.4 3.5.5-rc.1 4.0.0-rc.1 4.0.0",
                "3.5.4",
            ),
            // tags that move are not versions
            (
                "*",
                &[],
                "1 1.28 1.28.0 1.28.1 1.27 2",
                "2 1.28.1 1.28.0 1.27",
            ),
            ("*", &[], "1.28.0 1.28.0.1 1.28", "1.28.0.1 1.28.0"),
            (
                "*",
                &[],
                "1.8.0 v1.9.0 1.9.0 v1.10.0",
                "v1.10.0 v1.9.0 1.8.0",
            ),
            ("*", &[], "20240101 20240215", "20240215 20240101"),
            // a snapshot, the number of a build and the hash of a commit
            (
                ">=3.18",
                &[],
                "3.17.9 3.18.6 3.20 3.20.0 20240606 4711 1234567 99999999999999999999999",
                "3.20.0 3.18.6",
            ),
            (">=4", &[], "3.20.0 20240606 4", "4"),
            (">=3 <99999999", &[], "3.20.0 20240606 4", "4 3.20.0"),
            (
                ">=20240101 <20250101",
                &[],
                "3.20.0 20231219 20240606 20250108",
                "20240606",
            ),
            (
                r"^v(\d+)\.(\d+)-alpine$",
                &[],
                "v1.9-alpine v1.10-alpine v1.11 latest",
                "v1.10-alpine v1.9-alpine",
            ),
            (
                "^(.*-debug)$",
                &[],
                "a-debug 2-debug 10-debug 3",
                "10-debug 2-debug a-debug",
            ),
        ] {
            assert_eq!(selected(select, except, found), expected, "{select}");
        }
    }

    #[test]
    fn a_rule_that_needs_a_current_version_is_refused() {
        for select in ["patch", "minor", "digest", "never", "latest", "^v1("] {
            assert!(VersionSelection::new(select).is_err(), "{select}");
        }
        let mut selection = VersionSelection::new("*").unwrap();
        assert!(selection.exclude("^v1(").is_err());
    }
}
