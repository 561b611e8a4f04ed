//! `repodata/repomd.xml`: the list of the indexes of a repository, with their digests.

use super::metadata::malformed;
use super::primary::{digest, is_strong};
use super::xml::{XmlElement, XmlEvent, walk};
use crate::path::{based_href, location};
use jiff::Timestamp;
use landfall_model::{Digest, Failure, is_web_url, without_bom};

const WHAT: &str = "repomd.xml";

/// The maximum number of indexes that a `repomd.xml` may list. Fedora lists 20.
const MAX_INDEXES: usize = 1_000;

/// The content of a `repomd.xml`: the indexes of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repomd {
    /// The time when the indexes were generated: the newest of their timestamps. If no index has a
    /// timestamp, this is the revision, provided that it is a time.
    pub date: Option<Timestamp>,
    /// The indexes as they are written. An odd one must not hide the others, so each is checked
    /// when it is used.
    listed: Vec<RepomdEntry>,
}

/// An index of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepomdIndex {
    /// The kind of index: `primary`, `filelists`, `modules`, ….
    pub kind: String,
    /// Where the index is: a [`location`](crate::location) of the repository.
    pub path: String,
    /// The digest of the compressed file.
    pub digest: Digest,
    /// The size of the compressed file in bytes, if it is listed.
    pub size: Option<u64>,
    /// The digest of the unpacked content, if one that cannot be forged is listed.
    pub open_digest: Option<Digest>,
    /// The size of the unpacked content in bytes, if it is listed.
    pub open_size: Option<u64>,
}

impl Repomd {
    /// Parses the content of a `repomd.xml`.
    ///
    /// # Errors
    /// If the file is not a complete `repomd.xml`, or lists too many indexes.
    pub fn parse(bytes: &[u8]) -> Result<Repomd, Failure> {
        let mut listed = Vec::new();
        let mut one = RepomdEntry::default();
        let mut checksum = String::new();
        let mut is_repomd = false;
        let mut newest = None;
        let mut revision = None;
        walk(bytes, WHAT, &mut |step| {
            match step {
                XmlEvent::Start(element) => match element.name() {
                    "repomd" => is_repomd = true,
                    "data" => {
                        // a new one, so that no field of the previous index remains
                        one = RepomdEntry {
                            kind: element.attribute("type")?.unwrap_or_default(),
                            ..RepomdEntry::default()
                        }
                    }
                    "checksum" | "open-checksum" => {
                        checksum = element.attribute("type")?.unwrap_or_default();
                    }
                    "location" => one.path = element_location(element)?.unwrap_or_default(),
                    _ => {}
                },
                XmlEvent::End(name, text) => match name {
                    "checksum" => one.checksum = (std::mem::take(&mut checksum), text.to_owned()),
                    "open-checksum" => one.open_digest = digest(&checksum, text),
                    // any text is allowed as a revision; createrepo writes the time
                    "revision" => revision = time(text),
                    "timestamp" => newest = newest.max(time(text)),
                    // like for dnf, a size that is not a number counts as not listed
                    "size" => one.size = text.parse().ok(),
                    "open-size" => one.open_size = text.parse().ok(),
                    "data" => {
                        if listed.len() == MAX_INDEXES {
                            let why = format!("it lists more than {MAX_INDEXES} indexes");
                            return Err(malformed(WHAT, why));
                        }
                        listed.push(std::mem::take(&mut one));
                    }
                    _ => {}
                },
            }
            Ok(())
        })?;
        if !is_repomd {
            return Err(malformed(WHAT, "it has no 'repomd' element"));
        }
        Ok(Repomd {
            date: newest.or(revision),
            listed,
        })
    }

    /// The kind of each index, in the order of the file, without duplicates.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for RepomdEntry { kind, .. } in &self.listed {
            if !kinds.contains(&kind.as_str()) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The kind of the index of groups that dnf reads: a compressed one, if there is one.
    pub fn group_kind(&self) -> Option<&str> {
        let kinds = self.kinds().into_iter().filter(|kind| is_group_kind(kind));
        kinds.max_by_key(|kind| kind.len())
    }

    /// Returns the first index of this kind in the repository `url`.
    ///
    /// # Errors
    /// If its location leads out of the host or is malformed, or its checksum is not SHA-256 or
    /// SHA-512.
    pub fn index(&self, url: &str, kind: &str) -> Result<Option<RepomdIndex>, Failure> {
        let index = self.listed.iter().find(|index| index.kind == kind);
        index.map(|index| index.checked(url)).transpose()
    }
}

/// Whether the index `kind` lists groups (`comps.xml`): `group`, or `group_gz` and the like with a
/// compression.
pub fn is_group_kind(kind: &str) -> bool {
    kind == "group" || kind.starts_with("group_") && kind != "group_zck"
}

/// The content of a `data` element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RepomdEntry {
    kind: String,
    path: String,
    checksum: (String, String),
    size: Option<u64>,
    open_digest: Option<Digest>,
    open_size: Option<u64>,
}

impl RepomdEntry {
    fn checked(&self, url: &str) -> Result<RepomdIndex, Failure> {
        let (algorithm, hex) = &self.checksum;
        let digest = digest(algorithm, hex).ok_or_else(|| {
            if is_strong(algorithm) {
                let why = format!("'{}' is not a {algorithm} checksum", hex.escape_default());
                return malformed(WHAT, why);
            }
            weak(&self.kind, algorithm)
        })?;
        // the path becomes part of a URL, and of the file names of exports
        let path = location(url, &self.path).map_err(|error| {
            Failure::failed(format!(
                "it lists a file whose location cannot be mirrored: {error}"
            ))
        })?;
        // what is read and served must come from the repository's own host
        if path.contains("://") {
            return Err(Failure::failed(format!(
                "it lists '{path}', which is on another host than the repository"
            )));
        }
        Ok(RepomdIndex {
            kind: self.kind.clone(),
            path,
            digest,
            size: self.size,
            open_digest: self.open_digest.clone(),
            open_size: self.open_size,
        })
    }
}

/// Returns the location that a `location` element names, unchecked.
pub(super) fn element_location(element: &XmlElement<'_>) -> Result<Option<String>, Failure> {
    let base = element.attribute("xml:base")?;
    let href = element.attribute("href")?;
    Ok(href.map(|href| based_href(base.as_deref(), &href)))
}

/// Parses a time in seconds; some tools write a fraction too. Returns `None` for other texts: a
/// revision may be any text.
fn time(text: &str) -> Option<Timestamp> {
    // the fraction is dropped: whole seconds are precise enough
    let seconds = text.split_once('.').map_or(text, |(seconds, _)| seconds);
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

const MIRRORS: &str = "metalink";

/// The mirrors of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorList {
    /// URLs of the repository, with a slash at the end, the preferred one first.
    pub urls: Vec<String>,
    /// The accepted digests of `repomd.xml`; empty if the list contains none.
    pub repomd: Vec<Digest>,
}

/// Parses a list of mirrors. URLs with dnf variables, and URLs of protocols other than http and
/// https, are skipped.
///
/// # Errors
/// If no URL is left, or a metalink is malformed, or has only weak checksums of `repomd.xml`.
pub fn read_mirrors(bytes: &[u8]) -> Result<MirrorList, Failure> {
    let bytes = without_bom(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| malformed("list of mirrors", error))?;
    let mirrors = if text.trim_start().starts_with('<') {
        parse_metalink(bytes)?
    } else {
        let lines = text.lines().map(str::trim).filter(|line| is_url(line));
        MirrorList {
            urls: lines
                .map(|line| format!("{}/", line.trim_end_matches('/')))
                .collect(),
            repomd: Vec::new(),
        }
    };
    if mirrors.urls.is_empty() {
        return Err(malformed(
            "list of mirrors",
            "it has no http or https URL without variables",
        ));
    }
    Ok(mirrors)
}

fn is_url(text: &str) -> bool {
    is_web_url(text) && !text.contains('$')
}

/// The failure of a file that has only a checksum that can be forged.
fn weak(name: &str, kind: &str) -> Failure {
    Failure::failed(format!(
        "it has a {kind} checksum for {name}; only sha256 and sha512 are accepted"
    ))
}

fn parse_metalink(bytes: &[u8]) -> Result<MirrorList, Failure> {
    let mut is_repomd = false;
    let mut kind = String::new();
    let mut preference = 0_u32;
    let mut urls = Vec::new();
    let mut found = Vec::new();
    let mut is_hashed = false;
    walk(bytes, MIRRORS, &mut |step| {
        match step {
            XmlEvent::Start(element) => match element.name() {
                "file" => is_repomd = element.attribute("name")?.as_deref() == Some("repomd.xml"),
                "hash" => kind = element.attribute("type")?.unwrap_or_default(),
                "url" => {
                    preference = element
                        .attribute("preference")?
                        .and_then(|text| text.parse().ok())
                        .unwrap_or(0);
                }
                _ => {}
            },
            // a metalink also has the digests of earlier versions (`mm0:alternates`)
            XmlEvent::End("hash", text) if is_repomd => {
                is_hashed = true;
                found.extend(digest(&kind, text));
            }
            XmlEvent::End("url", text) if is_repomd && is_url(text) => {
                if let Some(base) = text.strip_suffix("repodata/repomd.xml") {
                    urls.push((preference, base.to_owned()));
                }
            }
            XmlEvent::End(..) => {}
        }
        Ok(())
    })?;
    // ignoring weak hashes would turn a verified list into an unverified one
    if is_hashed && found.is_empty() {
        return Err(weak("repomd.xml", &kind));
    }
    urls.sort_by_key(|(preference, _)| std::cmp::Reverse(*preference));
    Ok(MirrorList {
        urls: urls.into_iter().map(|(_, url)| url).collect(),
        repomd: found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://h.test/a/r";

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
        let primary = read.index(URL, "primary").unwrap().unwrap();
        assert_eq!(primary.path, "repodata/x-primary.xml.gz");
        assert_eq!(
            primary.digest.to_string(),
            format!("sha256:{}", "a".repeat(64))
        );
        assert_eq!(primary.open_digest.as_ref().unwrap().hex(), "b".repeat(64));
        assert_eq!((primary.size, primary.open_size), (Some(123), Some(456)));
        assert!(read.index(URL, "filelists").unwrap().is_none());
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

    /// The index `primary`, if its entry is good.
    fn primary(text: &str) -> Result<RepomdIndex, Failure> {
        let repomd = Repomd::parse(text.as_bytes()).expect("one odd entry never hides the others");
        repomd.index(URL, "primary").map(|index| index.unwrap())
    }

    #[test]
    fn locations_on_the_host_are_accepted_and_others_are_errors() {
        for (href, path) in [
            ("../../blob/x.xml.gz", "../../blob/x.xml.gz"),
            ("./repodata/../x.gz", "x.gz"),
            ("/etc/x", "etc/x"),
            ("a b+c%2B", "a b+c%2B"),
            ("http://H.test:80/a/r/x%20y.gz", "x y.gz"),
        ] {
            let index = primary(&repomd(&sha256(), href)).unwrap();
            assert_eq!(index.path, path, "{href}");
        }
        for href in [
            "../../../x",
            "https://other/x",
            "",
            "a\\b",
            "repodata/",
            "ftp://h.test/x",
        ] {
            assert!(primary(&repomd(&sha256(), href)).is_err(), "{href}");
        }
    }

    #[test]
    fn weak_and_malformed_checksums_are_errors_of_their_index_only() {
        for (kind, sum) in [
            ("sha", "a".repeat(40)),
            ("md5", "a".repeat(32)),
            ("", String::new()),
            ("sha256", "abc".into()),
        ] {
            let checksum = format!(r#"<checksum type="{kind}">{sum}</checksum>"#);
            let text = repomd(&checksum, "repodata/x.gz");
            let error = primary(&text).unwrap_err();
            assert_eq!(
                error
                    .message
                    .contains("; only sha256 and sha512 are accepted"),
                kind != "sha256",
                "{error}"
            );
            let other = text.replace("type=\"primary\"", "type=\"odd\"");
            let good = repomd(&sha256(), "y.gz");
            let both = other.replace("</repomd>", &good[good.find("<data").unwrap()..]);
            assert_eq!(primary(&both).unwrap().path, "y.gz");
        }
    }

    #[test]
    fn sizes_and_open_checksums_that_cannot_be_read_count_as_not_listed() {
        let text = repomd(&sha256(), "repodata/x.gz")
            .replace("<size>123<", "<size>many<")
            .replace("<open-size>456<", "<open-size>-1<")
            .replace(&"b".repeat(64), "b");
        let index = primary(&text).unwrap();
        assert_eq!(
            (index.size, index.open_size, index.open_digest),
            (None, None, None)
        );
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

    #[test]
    fn the_number_of_indexes_is_limited() {
        let text = |count: usize| format!("<repomd>{}</repomd>", "<data type='x'/>".repeat(count));
        assert!(Repomd::parse(text(MAX_INDEXES).as_bytes()).is_ok());
        let error = Repomd::parse(text(MAX_INDEXES + 1).as_bytes()).unwrap_err();
        assert!(error.message.contains("more than 1000 indexes"), "{error}");
    }

    #[test]
    fn a_list_has_one_mirror_per_line() {
        let text = "# region = EU\nrsync://a.example/x\nhttps://a.example/$releasever/os\nhttps://b.example/9/os\n\nhttp://c.example/9/os/\n";
        let mirrors = read_mirrors(text.as_bytes()).unwrap();
        assert_eq!(
            mirrors.urls,
            ["https://b.example/9/os/", "http://c.example/9/os/"]
        );
        assert!(mirrors.repomd.is_empty());
        assert!(read_mirrors(b"# no mirrors\n").is_err());
    }

    #[test]
    fn a_metalink_has_current_and_earlier_digests_of_repomd() {
        let hash = |kind, fill: &str, n| format!("<hash type=\"{kind}\">{}</hash>", fill.repeat(n));
        let text = format!(
            r#"<?xml version="1.0"?><metalink version="3.0" xmlns:mm0="http://fedorahosted.org/mirrormanager"><files>
            <file name="repomd.xml"><mm0:timestamp>1</mm0:timestamp><size>1</size>
            <verification>{}{}</verification>
            <mm0:alternates><mm0:alternate><verification>{}</verification></mm0:alternate></mm0:alternates>
            <resources>
              <url protocol="https" type="https" preference="50">https://b.example/9/repodata/repomd.xml</url>
              <url protocol="rsync" preference="100">rsync://c.example/9/repodata/repomd.xml</url>
              <url protocol="http" preference="99">http://a.example/9/repodata/repomd.xml</url>
            </resources></file></files></metalink>"#,
            hash("md5", "a", 32),
            hash("sha256", "b", 64),
            hash("sha512", "c", 128),
        );
        let mirrors = read_mirrors(text.as_bytes()).unwrap();
        assert_eq!(
            mirrors.urls,
            ["http://a.example/9/", "https://b.example/9/"]
        );
        let digests: Vec<String> = mirrors.repomd.iter().map(Digest::to_string).collect();
        assert_eq!(
            digests,
            [
                format!("sha256:{}", "b".repeat(64)),
                format!("sha512:{}", "c".repeat(128))
            ]
        );
        let weak = text.replace("sha256", "sha1").replace("sha512", "md5");
        let error = read_mirrors(weak.as_bytes()).unwrap_err();
        assert!(
            error.message.contains(" checksum for repomd.xml; "),
            "{error}"
        );
        assert!(read_mirrors(&text.as_bytes()[..text.len() - 11]).is_err());
    }
}
