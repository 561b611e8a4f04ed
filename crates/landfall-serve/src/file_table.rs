//! Plain files by their URLs: `/files/<host>/<path>`.

use super::response::ApiError;
use landfall_item::UrlFile;
use landfall_model::Digest;
use percent_encoding::percent_decode_str;
use std::collections::{BTreeMap, BTreeSet};

/// A URL as a path below `/files/`, or below a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UrlPath {
    /// `host` or `host:port`, the port only where it is not the scheme's own.
    pub(super) host: String,
    /// Decoded, with its leading slash.
    pub(super) path: String,
    /// The part after `?`, not decoded.
    pub(super) query: Option<String>,
}

impl UrlPath {
    /// The path of `url`, where it is a URL with a host.
    pub(super) fn of(url: &str) -> Option<UrlPath> {
        let url = url::Url::parse(url).ok()?;
        let port = url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        Some(UrlPath {
            host: format!("{}{port}", url.host_str()?),
            path: percent_decode_str(url.path())
                .decode_utf8_lossy()
                .into_owned(),
            query: url.query().map(str::to_owned),
        })
    }

    fn key(&self) -> String {
        format!("{}{}", self.host, self.path)
    }
}

/// The path of `url` at this server, percent-encoded, for links.
pub(super) fn link(url: &str) -> Option<String> {
    let path = UrlPath::of(url)?;
    let url = url::Url::parse(url).ok()?;
    let query = path
        .query
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    Some(format!("/files/{}{}{query}", path.host, url.path()))
}

/// The content of every URL that is served, by host and path.
#[derive(Default)]
pub(super) struct FileTable(BTreeMap<String, BTreeMap<String, Held>>);

struct Held {
    query: Option<String>,
    digest: Digest,
}

impl FileTable {
    /// Adds files by all their URLs. A note names each URL that had other content before.
    pub(super) fn add(&mut self, files: &[UrlFile<'_>], notes: &mut Vec<String>) {
        let urls = files
            .iter()
            .flat_map(|file| file.urls.iter().map(|url| (&**url, file.digest)));
        for (url, digest) in urls {
            let Some(path) = UrlPath::of(url) else {
                continue;
            };
            let key = path.key();
            let held = Held {
                query: path.query,
                digest: digest.clone(),
            };
            let earlier = self.0.entry(key).or_default().insert(url.to_owned(), held);
            if let Some(earlier) = earlier.filter(|earlier| earlier.digest != *digest) {
                notes.push(format!("{url}: {digest} is served, not {}", earlier.digest));
            }
        }
    }

    /// Whether there is a file at this path, whatever its query.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.contains_key(&key_of(path))
    }

    /// Whether there are files of this host.
    pub(super) fn has_host(&self, host: &str) -> bool {
        let prefix = format!("{host}/");
        self.0
            .range(prefix.clone()..)
            .next()
            .is_some_and(|(path, _)| path.starts_with(&prefix))
    }

    /// The hosts of all files, sorted.
    pub(super) fn hosts(&self) -> BTreeSet<&str> {
        self.0
            .keys()
            .filter_map(|path| Some(path.split_once('/')?.0))
            .collect()
    }

    /// The content of a path below `/files/`. `query` must be that of the URL, or be absent.
    ///
    /// # Errors
    /// When there is no such file, or files with different content differ only in their queries.
    pub(super) fn find(&self, path: &str, query: Option<&str>) -> Result<&Digest, ApiError> {
        let key = key_of(path);
        let query = query.filter(|query| !query.is_empty());
        let all: Vec<(&String, &Held)> = self.0.get(&key).into_iter().flatten().collect();
        let exact = all
            .iter()
            .copied()
            .filter(|(_, held)| held.query.as_deref() == query);
        let mut held: Vec<(&String, &Held)> = exact.collect();
        if held.is_empty() && query.is_none() {
            held = all;
        }
        let Some((_, first)) = held.first() else {
            return Err(unknown(format!(
                "there is no file at {key} here; / lists what there is"
            )));
        };
        if held.iter().any(|(_, held)| held.digest != first.digest) {
            let urls: Vec<&str> = held.iter().map(|(url, _)| url.as_str()).collect();
            return Err(unknown(format!(
                "this path has two meanings: {}",
                urls.join(" and ")
            )));
        }
        Ok(&first.digest)
    }
}

/// The key of a path that a request has. apt asks flat repositories for `./name`.
fn key_of(path: &str) -> String {
    percent_decode_str(path)
        .decode_utf8_lossy()
        .replace("/./", "/")
}

fn unknown(message: String) -> ApiError {
    ApiError::not_found("NAME_UNKNOWN", message)
}

/// The media type by the ending of the name. A browser runs none of these.
pub(super) fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "txt" | "sha256" | "sha512" | "sha256sum" | "sha512sum" | "md5" | "asc" => {
            "text/plain; charset=utf-8"
        }
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "gz" | "tgz" => "application/gzip",
        "zst" => "application/zstd",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::file;
    use super::*;
    use landfall_item::ServedItem;
    use landfall_item::{LockedFile, LockedSidecar};

    fn table(files: &[LockedFile]) -> FileTable {
        let mut table = FileTable::default();
        files
            .iter()
            .for_each(|file| table.add(&file.files(), &mut Vec::new()));
        table
    }

    #[test]
    fn a_file_answers_to_all_its_urls() {
        let mut kubelet = file("https://dl.k8s.io/a%20b/kubelet", b"kubelet");
        kubelet.also = vec!["http://mirror.example:8080/kubelet".into()];
        let sum = Digest::sha256(b"sum");
        kubelet.sidecars = vec![LockedSidecar {
            url: "https://dl.k8s.io/kubelet.sha256".into(),
            digest: sum.clone(),
            size: 3,
        }];
        let digest = kubelet.digest.clone();
        let table = table(&[kubelet]);
        assert_eq!(
            table.find("dl.k8s.io/a%20b/kubelet", None).unwrap(),
            &digest
        );
        assert_eq!(
            table.find("mirror.example:8080/kubelet", None).unwrap(),
            &digest
        );
        assert_eq!(
            table.find("mirror.example%3A8080/kubelet", None).unwrap(),
            &digest
        );
        assert_eq!(table.find("dl.k8s.io/kubelet.sha256", None).unwrap(), &sum);
        assert!(
            table.find("mirror.example/kubelet", None).is_err(),
            "the port is part of the name"
        );
        assert!(
            table.find("dl.k8s.io/a%20b/kubelet", Some("x=1")).is_err(),
            "another query, another file"
        );
    }

    #[test]
    fn queries_part_what_one_path_holds() {
        let (a, b) = (
            file("https://h/get?v=1", b"a"),
            file("https://h/get?v=2", b"b"),
        );
        let (of_a, of_b) = (a.digest.clone(), b.digest.clone());
        let both = table(&[a.clone(), b]);
        assert_eq!(both.find("h/get", Some("v=1")).unwrap(), &of_a);
        assert_eq!(both.find("h/get", Some("v=2")).unwrap(), &of_b);
        let message = both.find("h/get", None).unwrap_err().message;
        assert!(
            message.contains("https://h/get?v=1") && message.contains("v=2"),
            "{message}"
        );
        assert_eq!(table(&[a]).find("h/get", None).unwrap(), &of_a);
    }

    #[test]
    fn links_lead_to_what_they_name() {
        let url = "https://h:8443/a%20b?x=1";
        assert_eq!(link(url).as_deref(), Some("/files/h:8443/a%20b?x=1"));
        let one = file(url, b"x");
        assert!(
            table(std::slice::from_ref(&one))
                .find("h:8443/a%20b", Some("x=1"))
                .is_ok()
        );
        assert_eq!(link("no url"), None);
    }
}
