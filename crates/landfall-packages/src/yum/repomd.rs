//! `repodata/repomd.xml`: the list of the indexes of a repository, with their digests.

use super::error::YumError;
use super::primary::digest;
use super::xml::{XmlEvent, walk};
use crate::is_plain_path;
use jiff::Timestamp;
use landfall_model::Digest;

const WHAT: &str = "repomd.xml";

/// The content of a `repomd.xml`: the indexes of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repomd {
    /// The time when the indexes were generated: the newest of their timestamps. If no index has a
    /// timestamp, this is the revision, provided that it is a time.
    pub date: Option<Timestamp>,
    /// The indexes, in the order of the file.
    pub indexes: Vec<RepomdIndex>,
}

/// An index of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepomdIndex {
    /// The kind of index: `primary`, `filelists`, `modules`, ….
    pub kind: String,
    /// The path relative to the repository. It is inside the repository.
    pub path: String,
    /// The digest of the compressed file.
    pub digest: Digest,
    /// The size of the compressed file in bytes, if it is listed.
    pub size: Option<u64>,
    /// The digest of the unpacked content, if it is listed.
    pub open_digest: Option<Digest>,
    /// The size of the unpacked content in bytes, if it is listed.
    pub open_size: Option<u64>,
}

impl Repomd {
    /// Parses the content of a `repomd.xml`.
    ///
    /// # Errors
    /// If the file is malformed, lists a path that leads out of the repository or is malformed, or
    /// has a checksum (of an index or of its unpacked content) that is not SHA-256 or SHA-512.
    pub fn parse(bytes: &[u8]) -> Result<Repomd, YumError> {
        let mut indexes = Vec::new();
        let mut one = IndexDraft::default();
        let mut checksum = String::new();
        let mut is_repomd = false;
        let mut newest = None;
        let mut revision = None;
        walk(bytes, WHAT, &mut |step| {
            match step {
                XmlEvent::Start(element) => match element.name() {
                    "repomd" => is_repomd = true,
                    "data" => {
                        // a new draft, so that no field of the previous index remains
                        one = IndexDraft {
                            kind: element.attribute("type")?.unwrap_or_default(),
                            ..IndexDraft::default()
                        }
                    }
                    "checksum" | "open-checksum" => {
                        checksum = element.attribute("type")?.unwrap_or_default();
                    }
                    "location" => one.path = element.attribute("href")?.unwrap_or_default(),
                    _ => {}
                },
                XmlEvent::End(name, text) => match name {
                    "checksum" => one.checksum = (std::mem::take(&mut checksum), text.to_owned()),
                    "open-checksum" => {
                        one.open_checksum = Some((std::mem::take(&mut checksum), text.to_owned()));
                    }
                    // any text is allowed as a revision; createrepo writes the time
                    "revision" => revision = time(text),
                    "timestamp" => newest = newest.max(time(text)),
                    "size" => one.size = Some(number(text)?),
                    "open-size" => one.open_size = Some(number(text)?),
                    "data" => indexes.push(std::mem::take(&mut one).index()?),
                    _ => {}
                },
            }
            Ok(())
        })?;
        if !is_repomd {
            return Err(YumError::malformed(WHAT, "it has no 'repomd' element"));
        }
        Ok(Repomd {
            date: newest.or(revision),
            indexes,
        })
    }

    /// Returns the first index of this kind.
    pub fn index(&self, kind: &str) -> Option<&RepomdIndex> {
        self.indexes.iter().find(|index| index.kind == kind)
    }
}

/// The content of a `data` element, until its end is read.
#[derive(Default)]
struct IndexDraft {
    kind: String,
    path: String,
    checksum: (String, String),
    size: Option<u64>,
    open_checksum: Option<(String, String)>,
    open_size: Option<u64>,
}

impl IndexDraft {
    fn index(self) -> Result<RepomdIndex, YumError> {
        let digest = self.digest(&self.checksum)?;
        let open_checksum = self.open_checksum.as_ref();
        let open_digest = open_checksum.map(|open| self.digest(open)).transpose()?;
        // the path becomes part of a URL, and of the file names of exports
        let path = checked_path(&self.path)?.to_owned();
        Ok(RepomdIndex {
            kind: self.kind,
            path,
            digest,
            size: self.size,
            open_digest,
            open_size: self.open_size,
        })
    }

    /// Parses a checksum of the index, given as its algorithm and its hexadecimal digits.
    fn digest(&self, (kind, hex): &(String, String)) -> Result<Digest, YumError> {
        digest(kind, hex).ok_or_else(|| match kind.to_ascii_lowercase().as_str() {
            "sha256" | "sha512" => {
                YumError::malformed(WHAT, format!("'{hex}' is not a {kind} checksum"))
            }
            _ => YumError::Weak {
                name: self.kind.clone(),
                kind: kind.clone(),
            },
        })
    }
}

fn number(text: &str) -> Result<u64, YumError> {
    text.parse().map_err(|_| {
        YumError::malformed(WHAT, format!("'{}' is not a size", text.escape_default()))
    })
}

/// Parses a time in seconds; some tools write a fraction too. Returns `None` for other texts: a
/// revision may be any text.
fn time(text: &str) -> Option<Timestamp> {
    // the fraction is dropped: whole seconds are precise enough
    let seconds = text.split_once('.').map_or(text, |(seconds, _)| seconds);
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

/// Returns `path`, or an error if it leads out of the repository or is malformed.
pub(super) fn checked_path(path: &str) -> Result<&str, YumError> {
    if is_plain_path(path) {
        Ok(path)
    } else {
        Err(YumError::Path(path.escape_default().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repomd(checksum: &str, href: &str) -> String {
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<repomd xmlns="http://linux.duke.edu/metadata/repo" xmlns:rpm="http://linux.duke.edu/metadata/rpm">
  <revision>1700000000</revision>
  <data type="primary">
    {checksum}
    <open-checksum type="sha256">{}</open-checksum>
    <location href="{href}"/>
    <timestamp>1700000000</timestamp><size>123</size><open-size>456</open-size>
  </data>
</repomd>"#,
            "b".repeat(64)
        )
    }

    fn sha256() -> String {
        format!(r#"<checksum type="sha256">{}</checksum>"#, "a".repeat(64))
    }

    #[test]
    fn indexes_are_listed_with_their_digests() {
        let read =
            Repomd::parse(repomd(&sha256(), "repodata/x-primary.xml.gz").as_bytes()).unwrap();
        let primary = read.index("primary").unwrap();
        assert_eq!(primary.path, "repodata/x-primary.xml.gz");
        assert_eq!(
            primary.digest.to_string(),
            format!("sha256:{}", "a".repeat(64))
        );
        assert_eq!(primary.open_digest.as_ref().unwrap().hex(), "b".repeat(64));
        assert_eq!((primary.size, primary.open_size), (Some(123), Some(456)));
        assert!(read.index("filelists").is_none());
    }

    #[test]
    fn the_date_is_that_of_the_newest_index() {
        let date = |from: &str, to: &str| {
            let text = repomd(&sha256(), "repodata/x.gz").replace(from, to);
            Repomd::parse(text.as_bytes())
                .unwrap()
                .date
                .map(|date| date.to_string())
        };
        let timestamp = "<timestamp>1700000000</timestamp>";
        let of_index = Some("2023-11-14T22:13:20Z".to_owned());
        assert_eq!(date("<revision>1700000000<", "<revision>9-rc1<"), of_index);
        assert_eq!(
            date("<revision>1700000000<", "<revision>1900000000<"),
            of_index
        );
        assert_eq!(
            date(timestamp, "<timestamp>1700000001.75</timestamp>"),
            Some("2023-11-14T22:13:21Z".into())
        );
        assert_eq!(date(timestamp, ""), of_index, "by its revision");
        let none = repomd(&sha256(), "x.gz")
            .replace(timestamp, "")
            .replace("1700000000", "2026-11/7");
        assert_eq!(Repomd::parse(none.as_bytes()).unwrap().date, None);
    }

    #[test]
    fn a_weak_or_malformed_checksum_of_the_unpacked_content_is_rejected() {
        let strong = format!("<open-checksum type=\"sha256\">{}<", "b".repeat(64));
        let text = repomd(&sha256(), "repodata/x.gz");
        for other in [
            "<open-checksum type=\"sha\">da39<",
            "<open-checksum type=\"sha256\">b<",
        ] {
            let text = text.replace(&strong, other);
            assert!(Repomd::parse(text.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn paths_that_lead_out_or_are_malformed_are_rejected() {
        for href in [
            "../primary.xml.gz",
            "/etc/passwd",
            "repodata/../../x",
            "a//b",
            "https://other/x",
            "",
            "a b",
            "a\\b",
        ] {
            let error = Repomd::parse(repomd(&sha256(), href).as_bytes()).unwrap_err();
            assert!(matches!(error, YumError::Path(_)), "{href}: {error}");
        }
    }

    #[test]
    fn weak_and_malformed_checksums_are_rejected() {
        for kind in ["sha", "sha1", "md5", ""] {
            let checksum = format!(r#"<checksum type="{kind}">{}</checksum>"#, "a".repeat(40));
            let error = Repomd::parse(repomd(&checksum, "repodata/x.gz").as_bytes()).unwrap_err();
            assert!(matches!(error, YumError::Weak { .. }), "{kind}: {error}");
        }
        let short = r#"<checksum type="sha256">abc</checksum>"#;
        assert!(Repomd::parse(repomd(short, "x.gz").as_bytes()).is_err());
    }

    #[test]
    fn other_and_truncated_documents_are_errors() {
        let whole = repomd(&sha256(), "repodata/x.gz");
        for text in [
            "",
            "<html>hello</html>",
            "plain",
            &whole[..whole.len() - 12],
            "<repomd><data type='x'>",
        ] {
            assert!(Repomd::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
