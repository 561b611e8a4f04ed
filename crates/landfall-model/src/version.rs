//! Tags as versions: their order, by numbers, and which of them are alike.

use std::cmp::Ordering;

/// A tag, or another text that names a version, taken apart for comparison.
///
/// Versions are compared only where they have one [shape](Version::shape): `1.27.3-alpine3.20` with
/// `1.28.0-alpine3.21`, and not with `1.28.0` or `1.28`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagVersion {
    text: String,
    shape: String,
    /// The number of numbers before the core, and in it.
    before: usize,
    core: usize,
    parts: Vec<Part>,
}

/// A number of any length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Number(String);

impl Number {
    fn new(digits: &str) -> Number {
        Number(digits.trim_start_matches('0').to_owned())
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        self.0
            .len()
            .cmp(&other.0.len())
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Number(Number),
    /// The mark of a pre-release: its rank and the numbers behind it.
    Pre(u8, Vec<Number>),
}

/// Marks of pre-releases, by rank.
const PRE: [&[&str]; 5] = [
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

/// Words with numbers that are no versions.
const NAMES: [&str; 13] = [
    "amd64", "arm64", "arm64v8", "arm32v5", "arm32v6", "arm32v7", "armv6", "armv7", "i386",
    "s390x", "ppc64le", "riscv64", "x86",
];

impl TagVersion {
    /// Takes `text` apart; `None` where it has no number.
    pub fn parse(text: &str) -> Option<TagVersion> {
        let mut version = TagVersion {
            text: text.into(),
            shape: String::new(),
            before: 0,
            core: 0,
            parts: Vec::new(),
        };
        let is_word = |c: char| c.is_ascii_alphanumeric();
        let (mut rest, mut after_pre) = (text, false);
        while !rest.is_empty() {
            let word_at = rest.find(is_word).unwrap_or(rest.len());
            let (separator, behind) = rest.split_at(word_at);
            let (word, behind) =
                behind.split_at(behind.find(|c| !is_word(c)).unwrap_or(behind.len()));
            after_pre = version.word(separator, word, after_pre);
            rest = behind;
        }
        if version.parts.is_empty() {
            return None;
        }
        (version.before, version.core) = core_of(&version.shape);
        Some(version)
    }

    /// Adds a word and the separator before it. `after_pre` says that a mark of a pre-release is
    /// what came last, and so does the result.
    fn word(&mut self, separator: &str, word: &str, after_pre: bool) -> bool {
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if let (true, true, Some(Part::Pre(_, numbers))) =
            (after_pre, is_number, self.parts.last_mut())
        {
            numbers.push(Number::new(word));
            return true;
        }
        if is_name(word) {
            self.shape.extend([separator, word]);
            return false;
        }
        let (mut pending, mut is_pre) = (separator, false);
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let digits = first.is_ascii_digit();
            let end = rest
                .find(|c: char| c.is_ascii_digit() != digits)
                .unwrap_or(rest.len());
            let (piece, behind) = rest.split_at(end);
            if digits {
                match self.parts.last_mut() {
                    Some(Part::Pre(_, numbers)) if is_pre => numbers.push(Number::new(piece)),
                    _ => {
                        self.shape.extend([pending, "#"]);
                        self.parts.push(Part::Number(Number::new(piece)));
                    }
                }
            } else if let (false, Some(rank)) = (
                self.parts.is_empty(),
                pre_rank(piece, rest.len() < word.len() && !behind.is_empty()),
            ) {
                // before all numbers it is the name of a channel
                self.parts.push(Part::Pre(rank, Vec::new()));
                is_pre = true;
            } else {
                self.shape.extend([pending, piece]);
                is_pre = false;
            }
            (pending, rest) = ("", behind);
        }
        if word.is_empty() {
            self.shape += separator;
        }
        is_pre
    }

    /// The text it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text with `#` for each number, and without the mark of a pre-release.
    pub fn shape(&self) -> &str {
        &self.shape
    }

    /// Whether it has the mark of a pre-release.
    pub fn is_prerelease(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Pre(..)))
    }

    /// The numbers of the version proper: major, minor, patch.
    pub fn core(&self) -> Vec<&Number> {
        let numbers = self.parts.iter().filter_map(|part| match part {
            Part::Number(number) => Some(number),
            Part::Pre(..) => None,
        });
        numbers.skip(self.before).take(self.core).collect()
    }

    /// The order of two versions; that of different shapes means nothing.
    pub fn order(&self, other: &TagVersion) -> Ordering {
        self.core()
            .cmp(&other.core())
            .then_with(|| in_order(&self.parts, &other.parts))
    }
}

/// Where the core is in a shape: the numbers before it, and those in it. It is the first run of
/// numbers with dots between them, where that stands at the start or behind a `v` there, or else
/// the first one with more than one number.
fn core_of(shape: &str) -> (usize, usize) {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let (mut rest, mut before) = (shape, 0);
    while let Some(at) = rest.find('#') {
        let len = dotted(&rest[at..]);
        runs.push((before, len));
        before += len;
        rest = &rest[at + 2 * len - 1..];
    }
    let leads = shape.starts_with('#') || shape.starts_with("v#") || shape.starts_with("V#");
    let found = if leads {
        runs.first()
    } else {
        runs.iter().find(|(_, len)| *len > 1).or(runs.first())
    };
    found.copied().unwrap_or_default()
}

/// How many numbers with single dots between them `shape` begins with.
fn dotted(shape: &str) -> usize {
    let mut count = 1;
    let mut rest = &shape[1..];
    while let Some(behind) = rest.strip_prefix(".#") {
        (count, rest) = (count + 1, behind);
    }
    count
}

/// Whether a word is a name: of a processor, or of a commit.
fn is_name(word: &str) -> bool {
    let hex = word.strip_prefix('g').unwrap_or(word);
    let is_commit = hex.len() >= 7
        && hex
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && hex.bytes().any(|byte| byte.is_ascii_alphabetic())
        && hex.bytes().any(|byte| byte.is_ascii_digit());
    is_commit || NAMES.contains(&word)
}

/// The rank of a mark of a pre-release. `inside` a word, between numbers, Python's short forms
/// count too.
fn pre_rank(piece: &str, inside: bool) -> Option<u8> {
    let lower = piece.to_ascii_lowercase();
    let rank = PRE
        .iter()
        .position(|words| words.contains(&piece) || words.contains(&lower.as_str()));
    let short = || match piece {
        "a" if inside => Some(1),
        "b" if inside => Some(2),
        _ => None,
    };
    rank.map(|rank| rank as u8).or_else(short)
}

/// Part by part; a version with the mark of a pre-release stands before the same without it.
fn in_order(one: &[Part], other: &[Part]) -> Ordering {
    let mut at = 0;
    loop {
        let order = match (one.get(at), other.get(at)) {
            (None, None) => return Ordering::Equal,
            (Some(Part::Pre(a, b)), Some(Part::Pre(c, d))) => a.cmp(c).then_with(|| b.cmp(d)),
            (Some(Part::Pre(..)), _) => return Ordering::Less,
            (_, Some(Part::Pre(..))) => return Ordering::Greater,
            (Some(Part::Number(a)), Some(Part::Number(b))) => a.cmp(b),
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
        };
        if order != Ordering::Equal {
            return order;
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists of `orders.txt`: whose, and the tags.
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
    fn tags_stand_in_the_order_in_which_projects_published_them() {
        let lists = lists();
        assert!(lists.len() >= 150, "{}", lists.len());
        let (mut pairs, mut wrong) = (0, Vec::new());
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
    fn a_list_is_of_one_shape_with_few_exceptions() {
        // those where a project gave a release more numbers than the one before
        let odd = lists()
            .into_iter()
            .filter(|(_, tags)| tags.iter().any(|tag| tag.shape() != tags[0].shape()));
        let odd: Vec<&str> = odd.map(|(whose, _)| whose).collect();
        assert!(odd.len() < 20, "{odd:?}");
    }

    #[test]
    fn shape_core_and_mark_are_told_apart() {
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
