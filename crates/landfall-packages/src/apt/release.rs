//! The Release file of a suite: what its signer says of every index below it
//! (wiki.debian.org/DebianRepository/Format).

use super::paragraph::paragraphs;
use crate::PackagesError;
use crate::path::is_plain_path;
use jiff::Timestamp;
use landfall_model::Digest;
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
    /// The field `Acquire-By-Hash`: whether indexes can be downloaded by digest too.
    pub by_hash: bool,
    /// The URL of what it had at a time, with a placeholder for the time.
    pub snapshots: Option<String>,
    /// The architectures that it has, `all` among them where packages of it have indexes of their
    /// own.
    pub architectures: Vec<String>,
    /// The field `Components`, such as `main` and `contrib`.
    pub components: Vec<String>,
    /// Whether packages of the architecture `all` have an index of their own.
    pub has_index_of_all: bool,
    /// The preference of its packages: 500; less for suites whose packages are taken only when
    /// asked for.
    pub pin: i16,
    /// The indexes by their paths, which are relative to the Release file.
    pub files: BTreeMap<String, ReleaseFile>,
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
    /// Reads the text of a Release file, whose signature was checked. `name` is for messages.
    ///
    /// # Errors
    /// When it cannot be read, or has no strong sums.
    pub fn parse(name: &str, text: &str) -> Result<AptRelease, PackagesError> {
        let release = |why: &str| PackagesError::Release {
            name: name.into(),
            why: why.into(),
        };
        let paragraph = paragraphs(text).next().ok_or_else(|| release("is empty"))?;
        let field = |wanted: &str| paragraph.field(wanted).filter(|value| !value.is_empty());
        let words = |wanted: &str| -> Vec<String> {
            field(wanted)
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned)
                .collect()
        };
        let is_yes =
            |wanted: &str| field(wanted).is_some_and(|value| value.eq_ignore_ascii_case("yes"));
        let time = |wanted: &str| {
            field(wanted)
                .map(|value| {
                    date(value).ok_or_else(|| release(&format!("has no date in {wanted}")))
                })
                .transpose()
        };
        let sums = field("SHA256")
            .map(|sums| ("sha256", sums))
            .or(field("SHA512").map(|sums| ("sha512", sums)));
        let (algorithm, sums) = sums.ok_or_else(|| PackagesError::Weak {
            name: name.into(),
            weak: if field("MD5Sum").or(field("SHA1")).is_some() {
                ", only MD5 or SHA-1"
            } else {
                ""
            },
        })?;
        let architectures = words("Architectures");
        let without_all = words("No-Support-for-Architecture-all")
            .iter()
            .any(|word| word == "Packages");
        // apt_preferences(5): the default priorities of a source
        let pin = if !is_yes("NotAutomatic") {
            500
        } else if is_yes("ButAutomaticUpgrades") {
            100
        } else {
            1
        };
        Ok(AptRelease {
            suite: field("Suite").map(str::to_owned),
            codename: field("Codename").map(str::to_owned),
            date: time("Date")?,
            valid_until: time("Valid-Until")?,
            by_hash: is_yes("Acquire-By-Hash"),
            snapshots: field("Snapshots").map(str::to_owned),
            has_index_of_all: !without_all && architectures.iter().any(|one| one == "all"),
            architectures,
            components: words("Components"),
            pin,
            files: files(name, algorithm, sums)?,
        })
    }

    /// Refuses a release that is good no more at `now`.
    ///
    /// # Errors
    /// When its `Valid-Until` is past.
    pub fn check_time(&self, name: &str, now: Timestamp) -> Result<(), PackagesError> {
        match self.valid_until.filter(|until| *until < now) {
            Some(until) => Err(PackagesError::Expired {
                name: name.into(),
                until: until.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Whether it is the release of `suite` by its `Codename` or `Suite`, if it has one: apt
    /// compares the same (`pkgAcqMetaBase::VerifyVendor`), and only warns.
    pub fn is_of_suite(&self, suite: &str) -> bool {
        // of a path, as in `jammy/mongodb-org/7.0` and `jammy-updates/antelope`, the first part is
        // the name
        let first = |text: &str| text.split('/').next().unwrap_or_default().to_owned();
        // the older path of security.debian.org
        let security = suite
            .strip_suffix("/updates")
            .map(|name| format!("{name}-security"));
        let is_same =
            |name: &String| first(name) == first(suite) || security.as_ref() == Some(name);
        let names: Vec<&String> = [&self.suite, &self.codename]
            .into_iter()
            .flatten()
            .collect();
        names.is_empty() || names.into_iter().any(is_same)
    }

    /// Its `Codename` and `Suite`, for messages.
    pub fn names(&self) -> String {
        let names: Vec<&str> = [&self.codename, &self.suite]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        names.join(" or ")
    }
}

/// Lines of sums: digest, size, path. A path that is none is not read; nothing asks for it.
fn files(
    name: &str,
    algorithm: &str,
    sums: &str,
) -> Result<BTreeMap<String, ReleaseFile>, PackagesError> {
    let mut files = BTreeMap::new();
    for (line, text) in sums.lines().enumerate() {
        let mut words = text.split_whitespace();
        let (Some(sum), Some(size), Some(path), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            if text.trim().is_empty() {
                continue;
            }
            let why = format!("'{}' is no digest, size and path", text.trim());
            return Err(PackagesError::Text {
                name: name.into(),
                line,
                why,
            });
        };
        let wrong = |why: String| PackagesError::Text {
            name: name.into(),
            line,
            why,
        };
        let digest = format!("{algorithm}:{sum}")
            .parse()
            .map_err(|_| wrong(format!("'{sum}' is no {algorithm}")))?;
        let size = size
            .parse()
            .map_err(|_| wrong(format!("'{size}' is no size")))?;
        if is_plain_path(path) {
            files.insert(path.to_owned(), ReleaseFile { digest, size });
        }
    }
    Ok(files)
}

/// A date as in mails; Debian's says UTC where RFC 5322 has a number.
fn date(text: &str) -> Option<Timestamp> {
    let text = match text.rsplit_once(' ') {
        Some((front, "UTC" | "GMT" | "Z")) => format!("{front} +0000"),
        _ => text.to_owned(),
    };
    Some(jiff::fmt::rfc2822::parse(&text).ok()?.timestamp())
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
    fn a_release_says_what_stands_below_it() {
        let more = format!(
            "No-Support-for-Architecture-all: Packages\nSHA256:\n {SUM}   0 main/x\n {SUM} 12 ../x\n"
        );
        let release = AptRelease::parse("r", &text(&more)).unwrap();
        assert_eq!(
            release.files.keys().collect::<Vec<_>>(),
            ["main/x"],
            "nothing leads out"
        );
        assert!(release.by_hash && !release.has_index_of_all && release.is_of_suite("bookworm"));
        assert!(release.is_of_suite("stable") && !release.is_of_suite("trixie"));
        assert_eq!(
            (release.pin, release.date.unwrap().to_string().as_str()),
            (500, "2025-11-15T09:43:16Z")
        );
    }

    /// The releases of real repositories, and the suites that people name them by.
    #[test]
    fn a_release_is_of_the_suites_that_name_it() {
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
    fn weak_sums_broken_lines_and_past_dates_are_refused() {
        let parse = |more: &str| AptRelease::parse("r", &text(more)).unwrap_err().to_string();
        assert!(parse("MD5Sum:\n 00 1 x\n").contains("only MD5 or SHA-1"));
        assert!(parse("").contains("no SHA-256"));
        assert!(parse("SHA256:\n 00 1 x\n").contains("is no sha256"));
        assert!(parse(&format!("SHA256:\n {SUM} many x\n")).contains("is no size"));
        assert!(parse(&format!("SHA256:\n {SUM}\n")).contains("no digest, size and path"));
        assert!(parse(&format!("Valid-Until: soon\nSHA256:\n {SUM} 1 x\n")).contains("no date"));
        let more = format!("Valid-Until: Sat, 22 Nov 2025 09:43:16 UTC\nSHA256:\n {SUM} 1 x\n");
        let release = AptRelease::parse("r", &text(&more)).unwrap();
        assert!(
            release
                .check_time("r", "2025-11-22T09:00:00Z".parse().unwrap())
                .is_ok()
        );
        let error = release
            .check_time("r", "2025-11-22T10:00:00Z".parse().unwrap())
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("good until 2025-11-22T09:43:16Z"),
            "{error}"
        );
    }
}
