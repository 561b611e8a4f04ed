//! The `Release` file of a suite, which lists the checksums of all its indexes
//! (wiki.debian.org/DebianRepository/Format).
//!
//! Also the other indexes of a suite that apt downloads: its index targets.

use super::fields::{Paragraph, paragraphs};
use crate::path::is_plain_path;
use jiff::Timestamp;
use landfall_model::{Digest, Failure};
use std::collections::BTreeMap;

/// The content of a `Release` or `InRelease` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AptRelease {
    /// The field `Suite`, such as `stable`.
    pub suite: Option<String>,
    /// The field `Codename`, such as `bookworm`.
    pub codename: Option<String>,
    /// The field `Date`: when the release was generated.
    pub date: Option<Timestamp>,
    /// The field `Valid-Until`: the time after which clients reject the release.
    pub valid_until: Option<Timestamp>,
    /// Whether `Valid-Until` is there, but is not a date.
    has_odd_valid_until: bool,
    /// The field `Acquire-By-Hash`: whether indexes can be downloaded by digest too.
    pub by_hash: bool,
    /// The field `Snapshots`: the URL of earlier states of the repository, with a placeholder for
    /// the time.
    pub snapshots: Option<String>,
    /// The field `Architectures`. It contains `all` if packages of the architecture `all` may have
    /// an index of their own.
    pub architectures: Vec<String>,
    /// The field `Components`, such as `main` and `contrib`.
    pub components: Vec<String>,
    /// Whether packages of the architecture `all` have an index of their own.
    pub has_index_of_all: bool,
    /// The default pin priority of its packages: 500, or less if `NotAutomatic` says that packages
    /// are only installed on request.
    pub pin: i16,
    /// The indexes by path, relative to the `Release` file.
    pub files: BTreeMap<String, ReleaseFile>,
    /// The lines of the list of indexes that cannot be read: the path, and what is wrong.
    odd_lines: Vec<(String, Failure)>,
}

/// The digest and size of an index, as listed in a `Release` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseFile {
    /// The digest of the file, SHA-512 or SHA-256.
    pub digest: Digest,
    /// The size of the file in bytes.
    pub size: u64,
}

impl AptRelease {
    /// Parses the text of a `Release` file. The caller has verified its signature. `name` is for
    /// messages.
    ///
    /// # Errors
    /// If the text is empty, or has no SHA-256 or SHA-512 checksums.
    pub fn parse(name: &str, text: &str) -> Result<AptRelease, Failure> {
        let fields = paragraphs(text)
            .next()
            .ok_or_else(|| Failure::failed(format!("{name} is empty")))?;
        // MD5 and SHA-1 collisions can be made, so those lists are never used
        let sums = fields
            .text("SHA256")
            .map(|sums| ("sha256", sums))
            .or(fields.text("SHA512").map(|sums| ("sha512", sums)));
        let (algorithm, sums) = sums.ok_or_else(|| {
            let weak = match fields.text("MD5Sum").or(fields.text("SHA1")) {
                Some(_) => ", only MD5 or SHA-1",
                None => "",
            };
            Failure::failed(format!(
                "{name} has no SHA-256 or SHA-512 checksums{weak}, so its indexes cannot be \
                 verified"
            ))
        })?;
        let architectures = fields.words("Architectures");
        let without_all = fields
            .words("No-Support-for-Architecture-all")
            .iter()
            .any(|word| word == "Packages");
        // apt_preferences(5): the default priorities of a source
        let pin = if !fields.is_yes("NotAutomatic") {
            500
        } else if fields.is_yes("ButAutomaticUpgrades") {
            100
        } else {
            1
        };
        let valid_until = fields.text("Valid-Until");
        let (files, odd_lines) = parse_checksums(name, algorithm, sums);
        Ok(AptRelease {
            suite: fields.text("Suite").map(str::to_owned),
            codename: fields.text("Codename").map(str::to_owned),
            // apt only warns about another text
            date: fields.text("Date").and_then(parse_date),
            valid_until: valid_until.and_then(parse_date),
            has_odd_valid_until: valid_until.is_some_and(|text| parse_date(text).is_none()),
            by_hash: fields.is_yes("Acquire-By-Hash"),
            snapshots: fields.text("Snapshots").map(str::to_owned),
            has_index_of_all: !without_all && architectures.iter().any(|one| one == "all"),
            architectures,
            components: fields.words("Components"),
            pin,
            files,
            odd_lines,
        })
    }

    /// Checks that the release is still valid at `now`. A release without `Valid-Until` is
    /// always valid.
    ///
    /// # Errors
    /// If `Valid-Until` is before `now` or is not a date.
    pub fn check_time(&self, name: &str, now: Timestamp) -> Result<(), Failure> {
        if self.has_odd_valid_until {
            let why = "has an invalid date in Valid-Until";
            return Err(Failure::failed(format!("{name} {why}")));
        }
        match self.valid_until.filter(|until| *until < now) {
            Some(until) => Err(Failure::failed(format!(
                "{name} expired at {until} (`Valid-Until`): the mirror is outdated, or an old \
                 release is being replayed"
            ))),
            None => Ok(()),
        }
    }

    /// What is wrong with the line that lists `path`, possibly compressed. `None` if no such line
    /// is odd.
    pub fn odd_line(&self, path: &str) -> Option<&Failure> {
        let mut odd = self.odd_lines.iter();
        let is_of_path = |(listed, _): &&(String, _)| listed.starts_with(path);
        odd.find(is_of_path).map(|(_, why)| why)
    }

    /// Whether the release belongs to `suite`: `Codename` or `Suite` has the same first component,
    /// or the release has neither field. apt makes a similar comparison
    /// (`metaIndex::CheckDist`), but only warns about a difference.
    pub fn is_of_suite(&self, suite: &str) -> bool {
        // the suite `bookworm/updates` of security.debian.org is now called `bookworm-security`
        let security = suite
            .strip_suffix("/updates")
            .map(|name| format!("{name}-security"));
        let names: Vec<&String> = [&self.suite, &self.codename]
            .into_iter()
            .flatten()
            .collect();
        names.is_empty()
            || names.into_iter().any(|name| {
                first_component(name) == first_component(suite) || security.as_ref() == Some(name)
            })
    }

    /// Returns `Codename` and `Suite`, joined by "or", for messages.
    pub fn names(&self) -> String {
        let mut names: Vec<&str> = [&self.codename, &self.suite]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        names.dedup();
        names.join(" or ")
    }
}

/// The fields of a `Release` file. Empty fields count as missing.
impl<'t> Paragraph<'t> {
    fn text(self, key: &str) -> Option<&'t str> {
        self.field(key).filter(|value| !value.is_empty())
    }

    fn words(self, key: &str) -> Vec<String> {
        self.text(key)
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }

    fn is_yes(self, key: &str) -> bool {
        self.text(key)
            .is_some_and(|value| value.eq_ignore_ascii_case("yes"))
    }
}

/// Returns the first component of a suite. Some suites are paths, such as `jammy/mongodb-org/7.0`
/// or `jammy-updates/antelope`, and `Suite` or `Codename` of their releases is only this component.
fn first_component(suite: &str) -> &str {
    suite.split('/').next().unwrap_or_default()
}

/// Parses the lines of a list of checksums: digest, size and path. Also returns the lines that
/// cannot be read, by path: they matter only if their indexes are needed.
fn parse_checksums(
    name: &str,
    algorithm: &str,
    sums: &str,
) -> (BTreeMap<String, ReleaseFile>, Vec<(String, Failure)>) {
    let mut files = BTreeMap::new();
    let mut odd_lines = Vec::new();
    for (line, text) in sums.lines().enumerate() {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(path) = words.last() else { continue };
        match parse_checksum(algorithm, &words) {
            // other paths could lead out of the suite; no index that landfall needs has such a
            // path. Of two lines for one path, the first one counts, as for apt.
            Ok(file) if is_plain_path(path) => {
                files.entry((*path).to_owned()).or_insert(file);
            }
            Ok(_) => {}
            Err(why) => {
                let line = line + 1;
                let why = Failure::failed(format!("{name}, line {line} of its checksums: {why}"));
                odd_lines.push(((*path).to_owned(), why));
            }
        }
    }
    (files, odd_lines)
}

/// Parses the words of a line in a list of checksums.
fn parse_checksum(algorithm: &str, words: &[&str]) -> Result<ReleaseFile, String> {
    let [sum, size, _] = words else {
        return Err(format!(
            "'{}' is not a digest, a size and a path",
            words.join(" ")
        ));
    };
    Ok(ReleaseFile {
        digest: format!("{algorithm}:{sum}")
            .parse()
            .map_err(|_| format!("'{sum}' is not a {algorithm} digest"))?,
        size: size
            .parse()
            .map_err(|_| format!("'{size}' is not a size"))?,
    })
}

/// Parses a date in the format of RFC 5322.
fn parse_date(text: &str) -> Option<Timestamp> {
    // Debian writes the name of the time zone, RFC 5322 the offset
    let text = match text.rsplit_once(' ') {
        Some((front, "UTC" | "GMT" | "Z")) => format!("{front} +0000"),
        _ => text.to_owned(),
    };
    Some(jiff::fmt::rfc2822::parse(&text).ok()?.timestamp())
}

/// The names in a `Release` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleaseNames {
    /// The field `Origin`, such as `Debian`.
    pub origin: Option<String>,
    /// `Codename`, such as `bookworm`, or `Suite` if the release has no code name.
    pub distro: Option<String>,
}

impl ReleaseNames {
    /// Reads the names from the text of a `Release` file. Missing fields are `None`.
    pub fn parse(text: &str) -> ReleaseNames {
        let Some(fields) = paragraphs(text).next() else {
            return ReleaseNames::default();
        };
        let named = |key: &str| fields.text(key).map(str::to_owned);
        ReleaseNames {
            origin: named("Origin"),
            distro: named("Codename").or_else(|| named("Suite")),
        }
    }
}

// Index targets: the indexes that apt downloads besides `Packages`, if a program on the machine
// needs them.
//
// `apt-get indextargets` prints their names (apt.conf(5)). apt-file needs `Contents-deb`,
// command-not-found needs `CNF`, and appstream needs the `DEP-11` targets. If a release lists such
// an index and it is missing, apt discards everything that it downloaded from the source.

/// The name of each target, and its path in a suite. The path has no compression suffix such as
/// `.xz`.
const TARGETS: [(&str, &str); 10] = [
    ("CNF", "{component}/cnf/Commands-{native}"),
    ("Contents-deb", "{component}/Contents-{architecture}"),
    ("Contents-deb-legacy", "Contents-{architecture}"),
    ("DEP-11", "{component}/dep11/Components-{native}.yml"),
    ("DEP-11-icons", "{component}/dep11/icons-64x64.tar"),
    ("DEP-11-icons-hidpi", "{component}/dep11/icons-64x64@2.tar"),
    ("DEP-11-icons-large", "{component}/dep11/icons-128x128.tar"),
    (
        "DEP-11-icons-large-hidpi",
        "{component}/dep11/icons-128x128@2.tar",
    ),
    ("DEP-11-icons-small", "{component}/dep11/icons-48x48.tar"),
    (
        "DEP-11-icons-small-hidpi",
        "{component}/dep11/icons-48x48@2.tar",
    ),
];

/// Returns the names that `targets` of a manifest may contain, besides `Translation-<language>`.
pub fn target_names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|(name, _)| *name)
}

/// Returns the language of a target of translated descriptions, such as `pt_BR` for
/// `Translation-pt_BR`; `None` for other targets.
pub fn target_language(target: &str) -> Option<&str> {
    target
        .strip_prefix("Translation-")
        .filter(|text| !text.is_empty())
        // the language becomes part of a path
        .filter(|text| {
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_@-".contains(&byte))
        })
}

/// Whether a manifest may list the target `name`.
pub fn is_target(name: &str) -> bool {
    target_names().any(|known| known == name) || target_language(name).is_some()
}

/// Returns the possible paths of the target `name` in a suite, sorted. The first of the machine's
/// `architectures` is the native one.
pub fn target_paths(name: &str, components: &[String], architectures: &[String]) -> Vec<String> {
    let pattern = match (
        TARGETS.iter().find(|(known, _)| *known == name),
        target_language(name),
    ) {
        (Some((_, pattern)), _) => (*pattern).to_owned(),
        (None, Some(_)) => format!("{{component}}/i18n/{name}"),
        (None, None) => return Vec::new(),
    };
    let native = architectures.first().map_or("", String::as_str);
    let mut paths: Vec<String> = Vec::new();
    // only the release says which of the paths exist
    for architecture in architectures {
        let per_component = pattern
            .replace("{architecture}", architecture)
            .replace("{native}", native);
        paths.extend(
            components
                .iter()
                .map(|component| per_component.replace("{component}", component)),
        );
    }
    // patterns without `{architecture}` give the same path for each architecture
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn text(more: &str) -> String {
        format!(
            "Origin: x\nSuite: stable\nCodename: bookworm\nDate: Sat, 15 Nov 2025 09:43:16 UTC\nAcquire-By-Hash: yes\n\
     Architectures: all amd64 i386\nComponents: main contrib\n{more}"
        )
    }

    #[test]
    fn a_release_lists_its_indexes_and_names() {
        let more = format!(
            "No-Support-for-Architecture-all: Packages\nSHA256:\n {SUM}   0 main/x\n {SUM} 12 ../x\n"
        );
        let release = AptRelease::parse("r", &text(&more)).unwrap();
        assert_eq!(
            release.files.keys().collect::<Vec<_>>(),
            ["main/x"],
            "paths outside of the suite are omitted"
        );
        assert!(release.by_hash && !release.has_index_of_all && release.is_of_suite("bookworm"));
        assert!(release.is_of_suite("stable") && !release.is_of_suite("trixie"));
        assert_eq!(
            (release.pin, release.date.unwrap().to_string().as_str()),
            (500, "2025-11-15T09:43:16Z")
        );
    }

    /// The releases of real repositories, and the suites by which manifests refer to them.
    #[test]
    fn a_release_matches_the_suites_that_name_it() {
        let is_of = |names: &str, suite: &str| {
            let text = format!("Origin: x\n{names}SHA256:\n {SUM} 0 main/x\n");
            AptRelease::parse("r", &text).unwrap().is_of_suite(suite)
        };
        let debian = "Suite: oldstable\nCodename: bookworm\n";
        let security = "Suite: oldstable-security\nCodename: bookworm-security\n";
        for (names, suite) in [
            (debian, "bookworm"),
            (debian, "oldstable"),
            (security, "bookworm-security"),
            (security, "oldstable-security"),
            (security, "bookworm/updates"),
            ("Suite: oldoldstable\nCodename: buster\n", "buster/updates"),
            ("Suite: experimental\nCodename: rc-buggy\n", "experimental"),
            ("Suite: jammy-updates\nCodename: jammy\n", "jammy-updates"),
            (
                "Suite: jammy\nCodename: jammy/mongodb-org\n",
                "jammy/mongodb-org/7.0",
            ),
            ("Suite: nodistro\n", "nodistro"),
            // download.docker.com
            ("Label: Docker CE\nSuite: jammy\n", "jammy"),
            // repo.mongodb.org
            ("Suite: jammy\n", "jammy/mongodb-org/7.0"),
            ("", "anything"),
        ] {
            assert!(is_of(names, suite), "{names}: {suite}");
        }
        for (names, suite) in [
            (debian, "trixie"),
            (debian, "stable"),
            (debian, "bookworm-security"),
            (debian, "bookworm-updates"),
            (security, "bookworm"),
            ("Suite: jammy\nCodename: jammy\n", "jammy-security"),
            ("Suite: unstable\nCodename: sid\n", "bookworm"),
            // download.mono-project.com, which needs `codename: buster`
            (
                "Suite: buster\nCodename: buster\n",
                "stable-buster/snapshots/6.8",
            ),
        ] {
            assert!(!is_of(names, suite), "{names}: {suite}");
        }
    }

    #[test]
    fn a_release_without_strong_checksums_is_rejected() {
        let parse = |more: &str| AptRelease::parse("r", &text(more)).unwrap_err().to_string();
        assert!(parse("MD5Sum:\n 00 1 x\n").contains("only MD5 or SHA-1"));
        assert!(parse("").contains("no SHA-256"));
    }

    #[test]
    fn an_odd_line_matters_only_for_its_index() {
        for (line, why) in [
            ("00 1 main/x".to_owned(), "'00' is not a sha256 digest"),
            (format!("{SUM} many main/x"), "'many' is not a size"),
            (
                format!("{SUM} main/x"),
                "is not a digest, a size and a path",
            ),
            (
                format!("{SUM} 1 a main/x"),
                "is not a digest, a size and a path",
            ),
        ] {
            let more = format!("SHA256:\n {SUM} 7 main/good\n {line}\n {SUM} 8 main/good\n");
            let release = AptRelease::parse("r", &text(&more)).unwrap();
            assert_eq!(release.files.len(), 1);
            assert_eq!(release.files["main/good"].size, 7, "the first line counts");
            let odd = release.odd_line("main/x").unwrap().to_string();
            assert!(
                odd.contains("line 2 of its checksums") && odd.contains(why),
                "{odd}"
            );
            assert!(release.odd_line("main/good").is_none());
        }
    }

    #[test]
    fn dates_that_cannot_be_read_count_only_where_they_protect() {
        let sums = format!("SHA256:\n {SUM} 1 x\n");
        let odd = text(&sums).replace("Date: Sat", "Date: Xyz");
        let release = AptRelease::parse("r", &odd).unwrap();
        assert_eq!(release.date, None);
        let now = "2025-11-22T09:00:00Z".parse().unwrap();
        assert!(release.check_time("r", now).is_ok());
        let release = AptRelease::parse("r", &text(&format!("Valid-Until: soon\n{sums}"))).unwrap();
        let why = release.check_time("r", now).unwrap_err().to_string();
        assert!(why.contains("invalid date in Valid-Until"), "{why}");

        let more = format!("Valid-Until: Sat, 22 Nov 2025 09:43:16 UTC\n{sums}");
        let release = AptRelease::parse("r", &text(&more)).unwrap();
        assert!(release.check_time("r", now).is_ok());
        let later = "2025-11-22T10:00:00Z".parse().unwrap();
        let why = release.check_time("r", later).unwrap_err().to_string();
        assert!(why.contains("expired at 2025-11-22T09:43:16Z"), "{why}");
    }

    #[test]
    fn the_code_name_is_preferred_to_the_suite() {
        let names = |text| {
            let ReleaseNames { origin, distro } = ReleaseNames::parse(text);
            (origin.unwrap_or_default(), distro.unwrap_or_default())
        };
        let own = |origin: &str, distro: &str| (origin.to_owned(), distro.to_owned());
        assert_eq!(
            names("Origin: Debian\nSuite: stable\nCodename: bookworm\n"),
            own("Debian", "bookworm")
        );
        assert_eq!(names("Suite: stable\nCodename:\n"), own("", "stable"));
        assert_eq!(names(""), own("", ""));
    }

    #[test]
    fn targets_have_the_paths_that_apt_requests() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let paths =
            |name| target_paths(name, &words("main contrib"), &words("amd64 all")).join(" ");
        assert_eq!(
            paths("CNF"),
            "contrib/cnf/Commands-amd64 main/cnf/Commands-amd64"
        );
        assert_eq!(paths("Contents-deb-legacy"), "Contents-all Contents-amd64");
        assert_eq!(
            paths("DEP-11-icons"),
            "contrib/dep11/icons-64x64.tar main/dep11/icons-64x64.tar"
        );
        assert_eq!(
            paths("Contents-deb"),
            "contrib/Contents-all contrib/Contents-amd64 main/Contents-all main/Contents-amd64"
        );
        assert_eq!(
            paths("Translation-pt_BR"),
            "contrib/i18n/Translation-pt_BR main/i18n/Translation-pt_BR"
        );
        for name in ["Sources", "Translation-", "Translation-../x"] {
            assert!(!is_target(name) && paths(name).is_empty(), "{name}");
        }
    }
}
