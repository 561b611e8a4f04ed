//! Versions of charts and the ranges in which dependencies name them, by the rules of
//! Masterminds/semver, which Helm uses.

use std::cmp::Ordering;
use std::str::FromStr;

/// A version: `1.2.3-rc.1+build`, also with a `v` before it and with numbers left out at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartVersion {
    numbers: [u64; 3],
    pre: Vec<Identifier>,
}

/// One part of what stands behind a version's `-`: a number, or a word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl FromStr for ChartVersion {
    type Err = ();

    fn from_str(text: &str) -> Result<ChartVersion, ()> {
        let partial: Partial = text.parse()?;
        if partial.is_wild {
            Err(())
        } else {
            Ok(partial.version)
        }
    }
}

impl Ord for ChartVersion {
    /// By precedence: the build does not count (semver.org, 11).
    fn cmp(&self, other: &ChartVersion) -> Ordering {
        let release = |version: &ChartVersion| version.pre.is_empty();
        let by_release = || release(self).cmp(&release(other));
        self.numbers
            .cmp(&other.numbers)
            .then_with(by_release)
            .then_with(|| self.pre.cmp(&other.pre))
    }
}

impl PartialOrd for ChartVersion {
    fn partial_cmp(&self, other: &ChartVersion) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A version of which a part may be left out: `1`, `1.2`, `1.2.x`, `*`.
#[derive(Debug, Clone)]
struct Partial {
    version: ChartVersion,
    /// How many of its numbers are given.
    given: usize,
    /// Whether a letter or `*` stands for a number.
    is_wild: bool,
}

impl FromStr for Partial {
    type Err = ();

    fn from_str(text: &str) -> Result<Partial, ()> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(before, _)| before);
        let (core, pre) = text
            .split_once('-')
            .map_or((text, None), |(core, pre)| (core, Some(pre)));
        let (mut numbers, mut given, mut is_wild) = ([0; 3], 0, false);
        for (at, part) in core.split('.').enumerate() {
            let number = numbers.get_mut(at).ok_or(())?;
            match part {
                "x" | "X" | "*" => is_wild = true,
                _ if is_wild
                    || part.is_empty()
                    || !part.bytes().all(|byte| byte.is_ascii_digit()) =>
                {
                    return Err(());
                }
                _ => (*number, given) = (part.parse().map_err(drop)?, at + 1),
            }
        }
        let identifier = |text: &str| match text {
            "" => Err(()),
            _ if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().map(Identifier::Number).map_err(drop)
            }
            _ if text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') =>
            {
                Ok(Identifier::Word(text.to_owned()))
            }
            _ => Err(()),
        };
        let pre = pre
            .map(|pre| pre.split('.').map(identifier).collect())
            .transpose()?
            .unwrap_or_default();
        Ok(Partial {
            version: ChartVersion { numbers, pre },
            given,
            is_wild,
        })
    }
}

impl Partial {
    /// The first version that is larger in the number at `place`.
    fn above(&self, place: usize) -> ChartVersion {
        let mut numbers = [0; 3];
        numbers[..=place].copy_from_slice(&self.version.numbers[..=place]);
        numbers[place] = numbers[place].saturating_add(1);
        ChartVersion {
            numbers,
            pre: Vec::new(),
        }
    }

    /// The first version behind all those that this one, with what it leaves out, stands for;
    /// `None` for `*`.
    fn end(&self) -> Option<ChartVersion> {
        self.given.checked_sub(1).map(|place| self.above(place))
    }
}

/// A range of versions, as in `^1.2.0`, `~1.2`, `1.x`, `>=1.0 <3.0 || 4.x`, `1.2 - 2.0`.
#[derive(Debug, Clone)]
pub struct ChartVersionRange(Vec<Vec<Comparison>>);

#[derive(Debug, Clone)]
struct Comparison {
    operator: String,
    than: Partial,
}

impl FromStr for ChartVersionRange {
    type Err = ();

    fn from_str(text: &str) -> Result<ChartVersionRange, ()> {
        text.split("||")
            .map(all_of)
            .collect::<Result<_, _>>()
            .map(ChartVersionRange)
    }
}

/// The comparisons of one alternative.
fn all_of(text: &str) -> Result<Vec<Comparison>, ()> {
    let comparison = |operator: &str, version: &str| {
        Ok(Comparison {
            operator: operator.to_owned(),
            than: version.parse()?,
        })
    };
    if let Some((from, to)) = text.split_once(" - ") {
        return Ok(vec![
            comparison(">=", from.trim())?,
            comparison("<=", to.trim())?,
        ]);
    }
    let is_operator = |c: char| "=!<>~^".contains(c);
    let mut words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty());
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        let version = word.trim_start_matches(is_operator);
        let operator = &word[..word.len() - version.len()];
        // a blank may stand behind the operator
        let version = if version.is_empty() {
            words.next().ok_or(())?
        } else {
            version
        };
        all.push(comparison(operator, version)?);
    }
    if all.is_empty() { Err(()) } else { Ok(all) }
}

impl ChartVersionRange {
    /// Whether `version` is in the range. One with a `-` is where the range names such a one
    /// itself.
    pub fn has(&self, version: &ChartVersion) -> bool {
        self.0.iter().any(|all| {
            let allows_pre =
                version.pre.is_empty() || all.iter().any(|one| !one.than.version.pre.is_empty());
            allows_pre && all.iter().all(|one| one.has(version))
        })
    }
}

impl Comparison {
    fn has(&self, version: &ChartVersion) -> bool {
        let Comparison { operator, than } = self;
        let from = *version >= than.version;
        let below = |end: Option<ChartVersion>| end.is_none_or(|end| *version < end);
        match operator.as_str() {
            // `1.2` means every version that begins so
            "" | "=" if than.given < 3 => from && below(than.end()),
            "" | "=" => *version == than.version,
            "!=" if than.given < 3 => !(from && below(than.end())),
            "!=" => *version != than.version,
            ">" if than.given < 3 => !below(than.end()) && than.given > 0,
            ">" => *version > than.version,
            ">=" | "=>" => from,
            "<" => !from,
            "<=" | "=<" if than.given < 3 => below(than.end()),
            "<=" | "=<" => *version <= than.version,
            "~" | "~>" => {
                from && below(
                    than.given
                        .checked_sub(1)
                        .map(|last| than.above(last.min(1))),
                )
            }
            "^" => {
                let first = than
                    .version
                    .numbers
                    .iter()
                    .position(|number| *number > 0)
                    .unwrap_or(2);
                from && below(
                    than.given
                        .checked_sub(1)
                        .map(|last| than.above(first.min(last))),
                )
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
    fn ranges_have_what_helm_finds_in_them() {
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
        ] {
            good.iter()
                .for_each(|version| assert!(has(range, version), "{range} lacks {version}"));
            bad.iter()
                .for_each(|version| assert!(!has(range, version), "{range} has {version}"));
        }
        for bad in ["", "a", "1.2.3.4", "^", "1..2", "1.x.3", "latest"] {
            assert!(bad.parse::<ChartVersionRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn versions_are_in_their_order() {
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
