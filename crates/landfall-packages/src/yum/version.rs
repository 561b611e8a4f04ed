//! Versions of RPM packages and their order.

use std::cmp::Ordering;

/// Epoch, version and release: `[epoch:]version[-release]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evr<'a> {
    /// The epoch; 0 if it is omitted.
    pub epoch: u32,
    /// The version as upstream numbers it.
    pub version: &'a str,
    /// The release. A relation without a release matches every release.
    pub release: Option<&'a str>,
}

impl<'a> Evr<'a> {
    /// Splits `text` into its parts. If the text before the colon is not a number, it is part of
    /// the version.
    pub fn parse(text: &'a str) -> Evr<'a> {
        let (epoch, rest) = match text.split_once(':') {
            Some(("", rest)) => (0, rest),
            Some((epoch, rest)) => epoch.parse().map_or((0, text), |epoch| (epoch, rest)),
            None => (0, text),
        };
        let (version, release) = rest.rsplit_once('-').unwrap_or((rest, ""));
        Evr {
            epoch,
            version,
            release: Some(release).filter(|release| !release.is_empty()),
        }
    }

    /// Compares epochs and versions, ignoring releases.
    pub fn compare_versions(self, other: Evr<'_>) -> Ordering {
        self.epoch
            .cmp(&other.epoch)
            .then_with(|| compare(self.version, other.version))
    }

    /// Compares epochs, versions and releases. A version without a release is older than the same
    /// version with a release.
    pub fn compare(self, other: Evr<'_>) -> Ordering {
        self.compare_versions(other)
            .then_with(|| match (self.release, other.release) {
                (Some(own), Some(other)) => compare(own, other),
                (own, other) => own.is_some().cmp(&other.is_some()),
            })
    }
}

/// Compares two texts of the form `[epoch:]version[-release]`.
pub fn compare_evrs(first: &str, second: &str) -> Ordering {
    Evr::parse(first).compare(Evr::parse(second))
}

/// Compares two versions, or two releases, as RPM's `rpmvercmp` does: digits as numbers and letters
/// as text. Numbers are newer than letters, `~` is older than the end, and `^` is newer than the
/// end, but older than everything else.
pub(super) fn compare(first: &str, second: &str) -> Ordering {
    if first == second {
        return Ordering::Equal;
    }
    let mut a = first.as_bytes();
    let mut b = second.as_bytes();
    loop {
        // separators only separate: `2.0` and `2_0` are equal
        [a, b] = [a, b].map(|text| {
            let separators = text
                .iter()
                .take_while(|byte| !byte.is_ascii_alphanumeric() && !b"~^".contains(byte))
                .count();
            &text[separators..]
        });
        match (a.first(), b.first()) {
            (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => {
                (a, b) = (&a[1..], &b[1..]);
            }
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (Some(b'^'), None) => return Ordering::Greater,
            (None, Some(b'^')) => return Ordering::Less,
            (Some(b'^'), Some(_)) => return Ordering::Less,
            (Some(_), Some(b'^')) => return Ordering::Greater,
            // the longer one is newer; if both end here, they are equal
            (None, _) | (_, None) => return a.is_empty().cmp(&b.is_empty()).reverse(),
            (Some(one), Some(other)) => {
                let is_number = one.is_ascii_digit();
                if is_number != other.is_ascii_digit() {
                    return is_number.cmp(&other.is_ascii_digit());
                }
                let (own, a_rest) = segment(a, is_number);
                let (others, b_rest) = segment(b, is_number);
                let order = if is_number {
                    // without leading zeros, the longer number is the larger one
                    own.len().cmp(&others.len()).then_with(|| own.cmp(others))
                } else {
                    own.cmp(others)
                };
                if order.is_ne() {
                    return order;
                }
                (a, b) = (a_rest, b_rest);
            }
        }
    }
}

/// Splits the leading digits (without leading zeros) or the leading letters from the rest of
/// `text`.
fn segment(text: &[u8], is_number: bool) -> (&[u8], &[u8]) {
    let is_part = if is_number {
        u8::is_ascii_digit
    } else {
        u8::is_ascii_alphabetic
    };
    let length = text.iter().take_while(|byte| is_part(byte)).count();
    let (segment, rest) = text.split_at(length);
    // a segment of letters has no zeros
    let zeros = segment.iter().take_while(|byte| **byte == b'0').count();
    (&segment[zeros..], rest)
}

/// For each machine architecture, the package architectures that the machine can install, the
/// preferred one first. An excerpt of dnf's own table: only the names that are in use.
const POLICIES: &[(&str, &[&str])] = &[
    ("x86_64", &["x86_64", "i686", "i586", "i486", "i386"]),
    (
        "x86_64_v2",
        &["x86_64_v2", "x86_64", "i686", "i586", "i486", "i386"],
    ),
    ("aarch64", &["aarch64"]),
    ("ppc64le", &["ppc64le"]),
    ("s390x", &["s390x", "s390"]),
    ("riscv64", &["riscv64"]),
    ("i686", &["i686", "i586", "i486", "i386"]),
    ("armv7hl", &["armv7hl", "armv6hl"]),
];

/// Whether `name` is a known architecture of packages.
pub(super) fn is_architecture(name: &str) -> bool {
    let mut all = POLICIES.iter().flat_map(|(_, all)| *all);
    name == NOARCH || all.any(|own| *own == name)
}

/// The names that images and Debian use for architectures, each with RPM's name.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("amd64", "x86_64"),
    ("arm64", "aarch64"),
    ("386", "i686"),
    ("i386", "i686"),
    ("arm", "armv7hl"),
    ("armhf", "armv7hl"),
];

/// The architecture of packages that every machine can install.
pub(super) const NOARCH: &str = "noarch";

/// The architectures whose packages a machine can install, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Architectures(Vec<String>);

impl Architectures {
    /// Returns the architectures for a machine of the architecture `name`. If `name` is unknown,
    /// the machine can install only packages for `name` and `noarch`.
    pub fn of(name: &str) -> Architectures {
        let name = OTHER_NAMES
            .iter()
            .find(|(other, _)| *other == name)
            .map_or(name, |(_, name)| *name);
        let policy = POLICIES.iter().find(|(own, _)| *own == name);
        Architectures(policy.map_or_else(
            || vec![name.to_owned()],
            |(_, all)| all.iter().map(|name| (*name).to_owned()).collect(),
        ))
    }

    /// Returns the architecture of the machine itself.
    pub fn native(&self) -> &str {
        &self.0[0]
    }

    /// Returns all architectures whose packages can be installed, including `noarch`.
    pub fn all(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).chain([NOARCH]).collect()
    }

    /// Returns the rank of the architecture `name`, 0 for the preferred one; `None` for `noarch`.
    pub(super) fn rank(&self, name: &str) -> Option<usize> {
        let known = self.0.iter().position(|own| own == name);
        // an unknown architecture ranks last
        (name != NOARCH).then_some(known.unwrap_or(self.0.len()))
    }

    /// Whether two packages of the same name, one for the architecture `a` and one for `b`, exclude
    /// each other. Packages for 32 bits do not exclude packages for 64 bits.
    pub(super) fn collide(a: &str, b: &str) -> bool {
        word_sizes(a) & word_sizes(b) != 0
    }
}

/// A bit for 32-bit architectures and a bit for 64-bit ones; `noarch` has both.
fn word_sizes(name: &str) -> u8 {
    match name {
        NOARCH => 0b11,
        // `s390x` is the only 64-bit architecture in use whose name does not contain 64
        name if name.contains("64") || name.starts_with("s390x") => 0b10,
        _ => 0b01,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of `tests/rpmvercmp.at` in RPM's sources: each case is the first version, the second
    /// version, and their order.
    const CASES: &str = "
        1.0 1.0 0|1.0 2.0 -1|2.0 1.0 1|2.0.1 2.0.1 0|2.0 2.0.1 -1|2.0.1 2.0 1|2.0.1a 2.0.1a 0|2.0.1a 2.0.1 1
        2.0.1 2.0.1a -1|5.5p1 5.5p1 0|5.5p1 5.5p2 -1|5.5p2 5.5p1 1|5.5p10 5.5p10 0|5.5p1 5.5p10 -1|5.5p10 5.5p1 1
        10xyz 10.1xyz -1|10.1xyz 10xyz 1|xyz10 xyz10 0|xyz10 xyz10.1 -1|xyz10.1 xyz10 1|xyz.4 xyz.4 0|xyz.4 8 -1
        8 xyz.4 1|xyz.4 2 -1|2 xyz.4 1|5.5p2 5.6p1 -1|5.6p1 5.5p2 1|5.6p1 6.5p1 -1|6.5p1 5.6p1 1|6.0.rc1 6.0 1
        6.0 6.0.rc1 -1|10b2 10a1 1|10a2 10b2 -1|1.0aa 1.0aa 0|1.0a 1.0aa -1|1.0aa 1.0a 1|10.0001 10.0001 0
        10.0001 10.1 0|10.1 10.0001 0|10.0001 10.0039 -1|10.0039 10.0001 1|4.999.9 5.0 -1|5.0 4.999.9 1
        20101121 20101121 0|20101121 20101122 -1|20101122 20101121 1|2_0 2_0 0|2.0 2_0 0|2_0 2.0 0|a a 0|a+ a+ 0
        a+ a_ 0|a_ a+ 0|+a +a 0|+a _a 0|_+ _+ 0|+ _ 0|1.0~rc1 1.0~rc1 0|1.0~rc1 1.0 -1|1.0 1.0~rc1 1
        1.0~rc1 1.0~rc2 -1|1.0~rc2 1.0~rc1 1|1.0~rc1~git123 1.0~rc1~git123 0|1.0~rc1~git123 1.0~rc1 -1
        1.0~rc1 1.0~rc1~git123 1|1.0^ 1.0^ 0|1.0^ 1.0 1|1.0 1.0^ -1|1.0^git1 1.0^git1 0|1.0^git1 1.0 1|1.0 1.0^git1 -1
        1.0^git1 1.0^git2 -1|1.0^git2 1.0^git1 1|1.0^git1 1.01 -1|1.01 1.0^git1 1|1.0^20160101 1.0^20160101 0
        1.0^20160101 1.0.1 -1|1.0.1 1.0^20160101 1|1.0^20160101^git1 1.0^20160101^git1 0|1.0^20160102 1.0^20160101^git1 1
        1.0^20160101^git1 1.0^20160102 -1|1.0~rc1^git1 1.0~rc1^git1 0|1.0~rc1^git1 1.0~rc1 1|1.0~rc1 1.0~rc1^git1 -1
        1.0^git1~pre 1.0^git1~pre 0|1.0^git1 1.0^git1~pre 1|1.0^git1~pre 1.0^git1 -1|1b.fc17 1b.fc17 0|1b.fc17 1.fc17 -1
        1.fc17 1b.fc17 1|1g.fc17 1g.fc17 0|1g.fc17 1.fc17 1|1.fc17 1g.fc17 -1";

    #[test]
    fn versions_compare_as_rpm_compares_them() {
        let cases = CASES
            .split(['\n', '|'])
            .map(str::trim)
            .filter(|case| !case.is_empty());
        for case in cases {
            let words: Vec<&str> = case.split(' ').collect();
            let expected = words[2].parse::<i32>().unwrap().cmp(&0);
            assert_eq!(compare(words[0], words[1]), expected, "{case}");
        }
        assert_eq!(compare("", ""), Ordering::Equal);
        assert_eq!(compare("", "1"), Ordering::Less);
    }

    #[test]
    fn the_epoch_is_compared_first_and_defaults_to_0() {
        let order = |a, b| Evr::parse(a).compare(Evr::parse(b));
        assert_eq!(order("1:1-1", "2-1"), Ordering::Greater);
        assert_eq!(order("0:2-1", "2-1"), Ordering::Equal);
        assert_eq!(order("2-1", "2-1.el9"), Ordering::Less);
        assert_eq!(order("2", "2-1"), Ordering::Less);
        assert_eq!(
            Evr::parse("1:2-"),
            Evr {
                epoch: 1,
                version: "2",
                release: None
            }
        );
        assert_eq!(
            Evr::parse("a:2"),
            Evr {
                epoch: 0,
                version: "a:2",
                release: None
            }
        );
        assert_eq!(
            Evr::parse("1-2-3"),
            Evr {
                epoch: 0,
                version: "1-2",
                release: Some("3")
            }
        );
    }

    #[test]
    fn a_machine_prefers_its_own_architecture() {
        let x86 = Architectures::of("amd64");
        assert_eq!(x86.native(), "x86_64");
        assert_eq!(
            x86.all(),
            ["x86_64", "i686", "i586", "i486", "i386", "noarch"]
        );
        assert_eq!(
            (x86.rank("x86_64"), x86.rank("i386"), x86.rank("noarch")),
            (Some(0), Some(4), None)
        );
        assert_eq!(
            Architectures::of("loongarch64").all(),
            ["loongarch64", "noarch"]
        );
        assert_eq!(Architectures::of("arm64").native(), "aarch64");
    }

    #[test]
    fn packages_for_32_and_64_bits_do_not_exclude_each_other() {
        assert!(!Architectures::collide("x86_64", "i686"));
        assert!(
            Architectures::collide("x86_64", "noarch") && Architectures::collide("i686", "i386")
        );
    }
}
