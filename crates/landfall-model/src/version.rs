//! Versions in tags: which tags are comparable, and their order.

use std::cmp::Ordering;
use std::ops::Range;

/// A tag or another version text, parsed for comparison.
///
/// Only versions of the same [shape](TagVersion::shape) are comparable: `1.27.3-alpine3.20` with
/// `1.28.0-alpine3.21`, but not with `1.28.0` or `1.28`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagVersion {
    text: String,
    shape: String,
    /// The position of the [core](TagVersion::core) among the numbers.
    core: Range<usize>,
    parts: Vec<VersionPart>,
}

/// A decimal number of any length: tags contain dates and build numbers beyond 64 bits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionNumber(String);

impl VersionNumber {
    fn new(digits: &str) -> VersionNumber {
        VersionNumber(digits.trim_start_matches('0').to_owned())
    }

    /// Whether the number is at most the next one after `other`.
    pub(crate) fn is_at_most_next_of(&self, other: &VersionNumber) -> bool {
        let value = |number: &VersionNumber| match number.0.as_str() {
            "" => 0,
            digits => digits.parse().unwrap_or(u64::MAX),
        };
        value(self) <= value(other).saturating_add(1)
    }

    /// Whether the number is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
}

impl Ord for VersionNumber {
    fn cmp(&self, other: &VersionNumber) -> Ordering {
        // without leading zeros the longer number is larger
        self.0
            .len()
            .cmp(&other.0.len())
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for VersionNumber {
    fn partial_cmp(&self, other: &VersionNumber) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum VersionPart {
    Number(VersionNumber),
    /// A pre-release such as `rc.1`: the rank of its word and the numbers after it.
    Prerelease(u8, Vec<VersionNumber>),
}

/// The words of pre-releases, by rank.
const PRERELEASE_WORDS: [&[&str]; 5] = [
    &[
        "dev",
        "snapshot",
        "nightly",
        "canary",
        "unstable",
        "edge",
        "test",
        "ci",
        "next",
        "experimental",
    ],
    &["alpha", "ea"],
    &["beta"],
    &["pre", "preview", "prerelease", "milestone", "M", "tp"],
    &["rc", "cr"],
];

/// Architectures, whose numbers are not versions.
const ARCHITECTURES: [&str; 13] = [
    "amd64", "arm64", "arm64v8", "arm32v5", "arm32v6", "arm32v7", "armv6", "armv7", "i386",
    "s390x", "ppc64le", "riscv64", "x86",
];

/// Languages, databases and releases of Windows in the names of variants, and how many of their
/// numbers say which programs and data fit: `jdk17`, `pg15`, `python3.11`, `ltsc2019`.
const RUNTIMES: [(&str, usize); 25] = [
    ("jdk", 1),
    ("jre", 1),
    ("java", 1),
    ("openjdk", 1),
    ("temurin", 1),
    ("corretto", 1),
    ("amazoncorretto", 1),
    ("ibmjava", 1),
    ("sapmachine", 1),
    ("zulu", 1),
    ("liberica", 1),
    ("graalvm", 1),
    ("scala", 2),
    ("node", 1),
    ("php", 2),
    ("python", 2),
    ("py", 2),
    ("ruby", 2),
    ("pg", 1),
    ("postgres", 1),
    ("postgresql", 1),
    ("ltsc", 1),
    ("windows", 3),
    ("windowsservercore", 3),
    ("nanoserver", 3),
];

impl TagVersion {
    /// Parses `text`; returns `None` if it contains no number.
    pub fn parse(text: &str) -> Option<TagVersion> {
        let mut version = TagVersion {
            text: text.into(),
            shape: String::new(),
            core: 0..0,
            parts: Vec::new(),
        };
        let mut rest = text;
        let mut after_prerelease = false;
        while !rest.is_empty() {
            let word_start = rest
                .find(|c: char| c.is_ascii_alphanumeric())
                .unwrap_or(rest.len());
            let (separator, tail) = rest.split_at(word_start);
            let is_first = version.shape.is_empty();
            if let Some(end) = runtime_length(tail)
                && (!version.parts.is_empty() || is_first && is_before_version(tail.split_at(end)))
            {
                let (runtime, tail) = tail.split_at(end);
                version.shape.extend([separator, runtime]);
                after_prerelease = false;
                rest = tail;
                continue;
            }
            let word_end = tail
                .find(|c: char| !c.is_ascii_alphanumeric())
                .unwrap_or(tail.len());
            let (word, tail) = tail.split_at(word_end);
            after_prerelease = version.add_word(separator, word, after_prerelease);
            rest = tail;
        }
        if version.parts.is_empty() {
            return None;
        }
        version.core = find_core(&version.shape);
        Some(version)
    }

    /// Adds a word and the separator before it. `after_prerelease` says whether the last part is a
    /// pre-release: a number after a pre-release belongs to it. Returns `after_prerelease` for the
    /// next word.
    fn add_word(&mut self, separator: &str, word: &str, after_prerelease: bool) -> bool {
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if after_prerelease
            && is_number
            && let Some(VersionPart::Prerelease(_, numbers)) = self.parts.last_mut()
        {
            numbers.push(VersionNumber::new(word));
            return true;
        }
        if is_name(word) {
            self.shape.extend([separator, word]);
            return false;
        }
        let mut pending = separator;
        let mut is_prerelease = false;
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let digits = first.is_ascii_digit();
            let end = rest
                .find(|c: char| c.is_ascii_digit() != digits)
                .unwrap_or(rest.len());
            let (piece, tail) = rest.split_at(end);
            let is_inner = rest.len() < word.len() && !tail.is_empty();
            let is_channel = pending == "_" && tail.is_empty();
            if digits {
                match self.parts.last_mut() {
                    Some(VersionPart::Prerelease(_, numbers)) if is_prerelease => {
                        numbers.push(VersionNumber::new(piece));
                    }
                    _ => {
                        self.shape.extend([pending, "#"]);
                        self.parts
                            .push(VersionPart::Number(VersionNumber::new(piece)));
                    }
                }
            } else if let Some(rank) = prerelease_rank(piece, is_inner)
                // a word before all numbers, as in `beta-1.2`, is the name of a channel, and so is
                // one after `_`, as in `9.18-22.04_beta`
                && !self.parts.is_empty()
                && !is_channel
            {
                self.parts.push(VersionPart::Prerelease(rank, Vec::new()));
                is_prerelease = true;
            } else {
                self.shape.extend([pending, piece]);
                is_prerelease = false;
            }
            pending = "";
            rest = tail;
        }
        if word.is_empty() {
            self.shape += separator;
        }
        is_prerelease
    }

    /// The version as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text with `#` for each number and without its pre-release, such as `#.#.#-alpine#.#`.
    pub fn shape(&self) -> &str {
        &self.shape
    }

    /// The [shape](TagVersion::shape) without a build number after the core: `#.#.#` of `3.5.4-0`.
    pub(crate) fn shape_without_build(&self) -> &str {
        let core = self.shape.strip_suffix("-#");
        core.filter(|core| is_numbers(core)).unwrap_or(&self.shape)
    }

    /// Whether the version is the variant for developers of an image, as in `1.27.3-dev` and
    /// `24-alpine3.21-dev`. A pre-release with a number, such as `3.1-dev2`, is none.
    pub(crate) fn is_dev_variant(&self) -> bool {
        self.text.split('-').skip(1).any(|word| word == "dev")
    }

    /// Whether the version contains the hash of a commit, as in `v20230407-g1a2b3c4`. No other
    /// version has its [shape](TagVersion::shape).
    pub(crate) fn has_commit(&self) -> bool {
        let mut words = self.text.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(is_commit)
    }

    /// Whether the version is a pre-release.
    pub(crate) fn is_prerelease(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, VersionPart::Prerelease(..)))
    }

    /// The core numbers: major, minor, patch.
    pub fn core(&self) -> Vec<&VersionNumber> {
        let numbers = self.parts.iter().filter_map(|part| match part {
            VersionPart::Number(number) => Some(number),
            VersionPart::Prerelease(..) => None,
        });
        numbers
            .skip(self.core.start)
            .take(self.core.len())
            .collect()
    }

    /// The order of two versions. It is meaningful only if their shapes are equal.
    pub fn order(&self, other: &TagVersion) -> Ordering {
        self.core()
            .cmp(&other.core())
            .then_with(|| compare_parts(&self.parts, &other.parts))
    }
}

/// Whether a shape is numbers with dots between them, possibly after a `v`.
pub(crate) fn is_numbers(shape: &str) -> bool {
    let numbers = shape.strip_prefix(['v', 'V']).unwrap_or(shape);
    numbers.split('.').all(|number| number == "#")
}

/// Finds the core of a shape: the run of numbers at its start, possibly after a `v`. If the shape
/// starts with other text, the core is the first run with more than one number, or else the first
/// run.
fn find_core(shape: &str) -> Range<usize> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut rest = shape;
    let mut start = 0;
    while let Some(at) = rest.find('#') {
        let length = dotted_numbers(&rest[at..]);
        runs.push(start..start + length);
        start += length;
        rest = &rest[at + 2 * length - 1..];
    }
    let starts_with_number =
        shape.starts_with('#') || shape.starts_with("v#") || shape.starts_with("V#");
    let core = if starts_with_number {
        runs.first()
    } else {
        runs.iter().find(|run| run.len() > 1).or(runs.first())
    };
    core.cloned().unwrap_or_default()
}

/// Counts the numbers with single dots between them at the start of `shape`.
fn dotted_numbers(shape: &str) -> usize {
    let mut count = 1;
    let mut rest = &shape[1..];
    while let Some(tail) = rest.strip_prefix(".#") {
        count += 1;
        rest = tail;
    }
    count
}

/// The length of the name and version of a [runtime](RUNTIMES) with which `text` begins, such as
/// `jdk17`, `temurin-17` and `php8.2`. `None` if it begins with another word.
fn runtime_length(text: &str) -> Option<usize> {
    let name_end = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let (name, rest) = text.split_at(name_end);
    let (_, count) = RUNTIMES.iter().find(|(runtime, _)| *runtime == name)?;
    let version = rest.strip_prefix(['-', '_']).unwrap_or(rest);
    // only this word is searched, so that a tag of many runtimes takes linear time
    let word_end = version
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(version.len());
    let numbers: Vec<&str> = version[..word_end]
        .split('.')
        .take(*count)
        .take_while(|number| !number.is_empty())
        .collect();
    let length = numbers.join(".").len();
    (length > 0).then_some(text.len() - version.len() + length)
}

/// Whether a runtime at the start of a tag is followed by the version, as in `pg14-v0.2.0`.
/// Otherwise it is the version itself, as in `jdk-11_9` and `pg15.6-ts2.14.2`.
fn is_before_version((runtime, rest): (&str, &str)) -> bool {
    let begins_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_dotted = |word: &str| {
        let word = word.strip_prefix(['v', 'V']).unwrap_or(word);
        let numbers = word.split_once('.');
        numbers.is_some_and(|(major, minor)| begins_with_digit(major) && begins_with_digit(minor))
    };
    !runtime.contains('.') && rest.starts_with('-') && rest.split('-').any(is_dotted)
}

/// Whether a word is the name of an architecture or the hash of a commit.
fn is_name(word: &str) -> bool {
    is_commit(word) || ARCHITECTURES.contains(&word)
}

/// Whether a word is the hash of a commit, possibly after the `g` of `git describe`.
fn is_commit(word: &str) -> bool {
    let hex = word.strip_prefix('g').unwrap_or(word);
    hex.len() >= 7
        && hex
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && hex.bytes().any(|byte| byte.is_ascii_alphabetic())
        && hex.bytes().any(|byte| byte.is_ascii_digit())
}

/// The rank of a pre-release word. Between numbers (`is_inner`) Python's short forms count too: `a`
/// and `b` as in `1.0b2`.
fn prerelease_rank(piece: &str, is_inner: bool) -> Option<u8> {
    let lower = piece.to_ascii_lowercase();
    let rank = PRERELEASE_WORDS
        .iter()
        .position(|words| words.contains(&piece) || words.contains(&lower.as_str()));
    match piece {
        _ if rank.is_some() => rank.map(|rank| rank as u8),
        "a" if is_inner => Some(1),
        "b" if is_inner => Some(2),
        _ => None,
    }
}

/// Compares part by part. A pre-release precedes the same version without it.
fn compare_parts(one: &[VersionPart], other: &[VersionPart]) -> Ordering {
    use VersionPart::{Number, Prerelease};
    let mut index = 0;
    loop {
        let order = match (one.get(index), other.get(index)) {
            (None, None) => return Ordering::Equal,
            (Some(Prerelease(rank, numbers)), Some(Prerelease(other_rank, other_numbers))) => rank
                .cmp(other_rank)
                .then_with(|| numbers.cmp(other_numbers)),
            (Some(Prerelease(..)), _) => return Ordering::Less,
            (_, Some(Prerelease(..))) => return Ordering::Greater,
            (Some(Number(number)), Some(Number(other_number))) => number.cmp(other_number),
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
        };
        if order != Ordering::Equal {
            return order;
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists of `orders.txt`: the name of a project and its tags.
    fn lists() -> Vec<(&'static str, Vec<TagVersion>)> {
        let text = include_str!("../../../tests/data/versions/orders.txt");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let list = |line: &'static str| {
            let (whose, tags) = line.split_once(": ").unwrap();
            (
                whose,
                tags.split_whitespace()
                    .map(|tag| TagVersion::parse(tag).expect(tag))
                    .collect(),
            )
        };
        lines.map(list).collect()
    }

    #[test]
    fn tags_are_sorted_in_the_order_in_which_projects_published_them() {
        let lists = lists();
        assert!(lists.len() >= 150, "{}", lists.len());
        let mut pairs = 0;
        let mut wrong = Vec::new();
        for (whose, tags) in &lists {
            for (at, older) in tags.iter().enumerate() {
                for newer in tags[at + 1..]
                    .iter()
                    .filter(|newer| newer.shape() == older.shape())
                {
                    pairs += 1;
                    let order = [older.order(newer), newer.order(older), newer.order(newer)];
                    if order != [Ordering::Less, Ordering::Greater, Ordering::Equal] {
                        wrong.push(format!("{whose}: {} {}", older.text(), newer.text()));
                    }
                }
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
        assert!(pairs > 1500, "{pairs}");
    }

    #[test]
    fn the_tags_of_a_project_have_one_shape_with_few_exceptions() {
        // the exceptions: a project gave a release more numbers than the release before
        let odd = lists()
            .into_iter()
            .filter(|(_, tags)| tags.iter().any(|tag| tag.shape() != tags[0].shape()));
        let odd: Vec<&str> = odd.map(|(whose, _)| whose).collect();
        assert!(odd.len() < 20, "{odd:?}");
    }

    #[test]
    fn shape_core_and_prerelease_are_distinguished() {
        // a core number 0 has no digits: `1.30.` is the core 1.30.0
        for (tag, shape, core, pre) in [
            ("v1.30.0-rke2r1", "v#.#.#-rke#r#", "1.30.", false),
            ("1.27.3-alpine3.20", "#.#.#-alpine#.#", "1.27.3", false),
            ("v1.33.0-alpha.1", "v#.#.#", "1.33.", true),
            ("v1.30.1-rc1-rke2r1", "v#.#.#-rke#r#", "1.30.1", true),
            ("3.13.0rc1-slim", "#.#.#-slim", "3.13.", true),
            ("k3s-v1.30.2", "k#s-v#.#.#", "1.30.2", false),
            ("17-jdk-alpine3.20", "#-jdk-alpine#.#", "17", false),
            ("v0.20.2-amd64", "v#.#.#-amd64", ".20.2", false),
            ("1.9.0-g1a2b3c4", "#.#.#-g1a2b3c4", "1.9.", false),
            ("2024.01.15", "#.#.#", "2024.1.15", false),
            ("20240115", "#", "20240115", false),
            ("1.0-SNAPSHOT", "#.#", "1.", true),
            ("stable-2.9.5", "stable-#.#.#", "2.9.5", false),
            // the version of a language, database or Windows is a part of the name
            ("2.14.2-pg15", "#.#.#-pg15", "2.14.2", false),
            ("16.3-pg15.6", "#.#-pg15.#", "16.3", false),
            ("pg15.6-ts2.14.2", "pg#.#-ts#.#.#", "15.6", false),
            (
                "3.9.7-eclipse-temurin-17",
                "#.#.#-eclipse-temurin-17",
                "3.9.7",
                false,
            ),
            (
                "2.9.1rc1-python3.11.4-slim",
                "#.#.#-python3.11.#-slim",
                "2.9.1",
                true,
            ),
            (
                "1.19.0-scala_2.12-java11",
                "#.#.#-scala_2.12-java11",
                "1.19.",
                false,
            ),
            (
                "3.9-windows-ltsc2019-amd64",
                "#.#-windows-ltsc2019-amd64",
                "3.9",
                false,
            ),
            ("8.2-php8-fpm", "#.#-php8-fpm", "8.2", false),
            ("1.2-python3.", "#.#-python3.", "1.2", false),
            ("17.0.9_9-jdk-jammy", "#.#.#_#-jdk-jammy", "17..9", false),
            ("1.2-pgdg22", "#.#-pgdg#", "1.2", false),
            ("pg14-v0.2.0", "pg14-v#.#.#", ".2.", false),
            ("windows-1809-3.10.1", "windows-1809-#.#.#", "3.10.1", false),
            ("windows-3.10.1", "windows-#.#.#", "3.10.1", false),
            ("jdk-11_9", "jdk-#_#", "11", false),
            ("9.18-22.04_edge", "#.#-#.#_edge", "9.18", false),
            ("1.2_rc1", "#.#", "1.2", true),
            ("jdk-17.0.9_9", "jdk-#.#.#_#", "17..9", false),
        ] {
            let version = TagVersion::parse(tag).unwrap();
            let numbers: Vec<&str> = version
                .core()
                .into_iter()
                .map(|number| number.0.as_str())
                .collect();
            let found = (version.shape(), numbers.join("."), version.is_prerelease());
            assert_eq!(found, (shape, core.to_owned(), pre), "{tag}");
        }
        for none in ["latest", "stable", "", "main-rc."] {
            assert_eq!(TagVersion::parse(none), None, "{none}");
        }
    }
}
