//! Chart versions and the ranges of chart dependencies, by the rules of Masterminds/semver, which
//! Helm uses.

use crate::split_optional;
use std::cmp::Ordering;
use std::str::FromStr;

/// A chart version such as `1.2.3-rc.1+build`. It may begin with `v`, and may omit its last
/// numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartVersion {
    numbers: [u64; 3],
    pre: Vec<PrereleaseIdentifier>,
}

/// A dot-separated identifier of a pre-release (semver.org, 9). Numbers sort before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PrereleaseIdentifier {
    Number(u64),
    Word(String),
}

impl FromStr for ChartVersion {
    type Err = ();

    fn from_str(text: &str) -> Result<ChartVersion, ()> {
        let partial: PartialVersion = text.parse()?;
        if partial.is_wild {
            Err(())
        } else {
            Ok(partial.version)
        }
    }
}

impl Ord for ChartVersion {
    /// Compares by precedence, which ignores the build (semver.org, 11).
    fn cmp(&self, other: &ChartVersion) -> Ordering {
        self.numbers
            .cmp(&other.numbers)
            // a pre-release precedes its release
            .then_with(|| self.pre.is_empty().cmp(&other.pre.is_empty()))
            .then_with(|| self.pre.cmp(&other.pre))
    }
}

impl PartialOrd for ChartVersion {
    fn partial_cmp(&self, other: &ChartVersion) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A version, possibly with numbers left out or replaced by a wildcard: `1`, `1.2`, `1.2.x`, `*`.
#[derive(Debug, Clone)]
struct PartialVersion {
    version: ChartVersion,
    /// How many of the three numbers are written.
    given: usize,
    /// Whether there is a wildcard (`x`, `X` or `*`).
    is_wild: bool,
}

impl FromStr for PartialVersion {
    type Err = ();

    fn from_str(text: &str) -> Result<PartialVersion, ()> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(before, _)| before);
        let (core, pre) = split_optional(text, '-');
        let mut numbers = [0; 3];
        let mut given = 0;
        let mut is_wild = false;
        for (index, part) in core.split('.').enumerate() {
            let number = numbers.get_mut(index).ok_or(())?;
            if matches!(part, "x" | "X" | "*") {
                is_wild = true;
                continue;
            }
            // a number after a wildcard would have no meaning
            if is_wild || !is_number(part) {
                return Err(());
            }
            *number = part.parse().map_err(drop)?;
            given = index + 1;
        }
        let pre = match pre {
            Some(pre) => pre.split('.').map(str::parse).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        Ok(PartialVersion {
            version: ChartVersion { numbers, pre },
            given,
            is_wild,
        })
    }
}

impl FromStr for PrereleaseIdentifier {
    type Err = ();

    fn from_str(text: &str) -> Result<PrereleaseIdentifier, ()> {
        if is_number(text) {
            return text.parse().map(PrereleaseIdentifier::Number).map_err(drop);
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if text.is_empty() || !text.bytes().all(is_allowed) {
            return Err(());
        }
        Ok(PrereleaseIdentifier::Word(text.to_owned()))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A range of versions, such as `^1.2.0`, `~1.2`, `1.x`, `>=1.0 <3.0 || 4.x`, `1.2 - 2.0`.
///
/// A version is in the range only if it satisfies all comparisons of one alternative.
#[derive(Debug, Clone)]
pub struct ChartVersionRange(Vec<Vec<VersionComparison>>);

/// The operators of Masterminds/semver. Without one, versions must be equal.
const OPERATORS: [&str; 12] = [
    "", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^",
];

#[derive(Debug, Clone)]
struct VersionComparison {
    operator: String,
    than: PartialVersion,
}

impl VersionComparison {
    fn parse(operator: &str, version: &str) -> Result<VersionComparison, ()> {
        if !OPERATORS.contains(&operator) {
            return Err(());
        }
        Ok(VersionComparison {
            operator: operator.to_owned(),
            than: version.parse()?,
        })
    }
}

impl FromStr for ChartVersionRange {
    type Err = ();

    fn from_str(text: &str) -> Result<ChartVersionRange, ()> {
        text.split("||")
            .map(parse_alternative)
            .collect::<Result<_, _>>()
            .map(ChartVersionRange)
    }
}

fn parse_alternative(text: &str) -> Result<Vec<VersionComparison>, ()> {
    if let Some((from, to)) = text.split_once(" - ") {
        return Ok(vec![
            VersionComparison::parse(">=", from.trim())?,
            VersionComparison::parse("<=", to.trim())?,
        ]);
    }
    let mut words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty());
    let mut comparisons = Vec::new();
    while let Some(word) = words.next() {
        let mut version = word.trim_start_matches(['=', '!', '<', '>', '~', '^']);
        let operator = &word[..word.len() - version.len()];
        // a blank may follow the operator
        if version.is_empty() {
            version = words.next().ok_or(())?;
        }
        comparisons.push(VersionComparison::parse(operator, version)?);
    }
    if comparisons.is_empty() {
        return Err(());
    }
    Ok(comparisons)
}

impl ChartVersionRange {
    /// Whether the range contains `version`. A pre-release must satisfy an alternative in which at
    /// least one comparison names a pre-release.
    pub fn has(&self, version: &ChartVersion) -> bool {
        self.0.iter().any(|comparisons| {
            let names_prerelease = comparisons
                .iter()
                .any(|comparison| !comparison.than.version.pre.is_empty());
            (version.pre.is_empty() || names_prerelease)
                && comparisons
                    .iter()
                    .all(|comparison| comparison.accepts(version))
        })
    }
}

impl VersionComparison {
    /// Like `constraints.go` of Masterminds/semver, which compares the numbers: a pre-release of
    /// the next version does not match `^` or `~`, although it precedes that version.
    fn accepts(&self, version: &ChartVersion) -> bool {
        let VersionComparison { operator, than } = self;
        let is_from = *version >= than.version;
        let leading = |count: usize| version.numbers[..count].cmp(&than.version.numbers[..count]);
        match operator.as_str() {
            "" | "=" if than.given == 3 => *version == than.version,
            // fixes the minor version, or the major version if only that is given; `1.2` means
            // `~1.2`, and `~*` and `~0.0.0` match every version
            "" | "=" | "~" | "~>" => match than.given {
                0 => is_from,
                3 if than.version.numbers == [0; 3] => is_from,
                1 => is_from && leading(1).is_eq(),
                _ => is_from && leading(2).is_eq(),
            },
            "!=" => match than.given {
                1 => leading(1).is_ne(),
                2 => leading(2).is_ne() || version.pre != than.version.pre,
                _ => *version != than.version,
            },
            ">" => match than.given {
                count @ (1 | 2) => leading(count).is_gt(),
                _ => *version > than.version,
            },
            ">=" | "=>" => is_from,
            "<" => !is_from,
            "<=" | "=<" => match than.given {
                3 => *version <= than.version,
                1 => leading(1).is_le(),
                _ => leading(2).is_le(),
            },
            // fixes the numbers up to the first that is not 0
            "^" => {
                let [major, minor, _] = than.version.numbers;
                let fixed = if major > 0 || than.given == 1 {
                    1
                } else if minor > 0 || than.given == 2 {
                    2
                } else {
                    3
                };
                is_from && leading(fixed).is_eq()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(range: &str, version: &str) -> bool {
        range
            .parse::<ChartVersionRange>()
            .unwrap()
            .has(&version.parse().unwrap())
    }

    #[test]
    fn ranges_contain_the_versions_that_helm_finds() {
        for (range, good, bad) in [
            (
                "1.2.3",
                &["1.2.3", "v1.2.3", "1.2.3+b"][..],
                &["1.2.4", "1.2.3-rc1"][..],
            ),
            ("1.2", &["1.2.0", "1.2.9"], &["1.3.0"]),
            ("1.x.x", &["1.0.0", "1.9.9"], &["2.0.0", "0.9.0"]),
            ("*", &["0.0.1", "9.9.9"], &["1.0.0-rc1"]),
            ("^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0"]),
            ("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4"]),
            ("^0", &["0.9.0"], &["1.0.0"]),
            ("~1.2.3", &["1.2.9"], &["1.3.0"]),
            ("~1", &["1.9.0"], &["2.0.0"]),
            (
                ">=1.0 <3.0 || 4.x",
                &["1.0.0", "2.9.0", "4.5.0"],
                &["3.0.0", "5.0.0"],
            ),
            (">= 1.2, < 1.4", &["1.3.0"], &["1.4.0"]),
            ("1.2 - 1.4", &["1.2.0", "1.4.5"], &["1.5.0", "1.1.9"]),
            (">1.2", &["1.3.0"], &["1.2.9"]),
            ("!=1.2.3", &["1.2.4"], &["1.2.3"]),
            (">=1.0.0-0", &["1.1.0-rc1", "1.0.0"], &["0.9.0"]),
            // a pre-release of the next version is not in the range
            (
                "^1.0.0-0",
                &["1.0.0-rc.1", "1.9.0-rc.1"],
                &["2.0.0-rc.1", "2.0.0"],
            ),
            ("^0.2.0-0", &["0.2.1-rc.1"], &["0.3.0-rc.1"]),
            ("^0.0.3-0", &["0.0.3-rc.1"], &["0.0.4-rc.1"]),
            ("^0.0-0", &["0.0.9-rc.1"], &["0.1.0-rc.1"]),
            ("~1.2.0-0", &["1.2.9-rc.1"], &["1.3.0-rc.1"]),
            ("~1-0", &["1.9.0-rc.1"], &["2.0.0-rc.1"]),
            ("1.2-0", &["1.2.9-rc.1"], &["1.3.0-rc.1"]),
            ("<=1.2-0", &["1.2.9-rc.1"], &["1.3.0-rc.1"]),
            (">1.2-0", &["1.3.0-rc.1"], &["1.2.9-rc.1"]),
            ("!=1.2-0", &["1.3.0-rc.1", "1.2.0"], &["1.2.0-0", "1.2.9-0"]),
            ("~0.0.0", &["0.0.0", "1.2.3"], &["1.0.0-rc.1"]),
            ("~*", &["2.1.1"], &["1.0.0-rc.1"]),
            ("^0.0.0", &["0.0.0"], &["0.0.1", "1.2.3"]),
        ] {
            good.iter()
                .for_each(|version| assert!(has(range, version), "{range} lacks {version}"));
            bad.iter()
                .for_each(|version| assert!(!has(range, version), "{range} has {version}"));
        }
        for bad in [
            "", "a", "1.2.3.4", "^", "1..2", "1.x.3", "latest", "==1.2.3", "><1", "1 || ^^2",
        ] {
            assert!(bad.parse::<ChartVersionRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn versions_are_sorted_by_precedence() {
        let sorted = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-rc.2",
            "1.0.0-rc.11",
            "1.0.0",
            "v1.0.1",
        ];
        let versions = sorted.map(|text| text.parse::<ChartVersion>().unwrap());
        assert!(versions.is_sorted() && versions.windows(2).all(|two| two[0] != two[1]));
        assert!("1.x".parse::<ChartVersion>().is_err());
    }
}
