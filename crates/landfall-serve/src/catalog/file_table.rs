//! Files, git repositories and providers by their URLs: `/files/<host>/<path>`,
//! `/providers/<host>/…`.

use crate::response::RequestError;
use landfall_item::{LockedGitRepository, LockedProvider, MirrorFile, ProviderMirror, UrlFile};
use landfall_model::{Digest, local_path};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};
use url::{Position, Url};

/// The folder of local files below `/files/`.
const LOCAL_HOST: &str = "local";

/// The characters that are percent-encoded in the path of a link.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// A URL as a path below `/files/`, or below a folder of exported files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UrlPath {
    /// `host` or `host:port`; the scheme's default port is omitted.
    pub(crate) host: String,
    /// Percent-decoded, with its leading slash.
    pub(crate) path: String,
    /// The query string, not decoded.
    pub(crate) query: Option<String>,
}

impl UrlPath {
    /// Parses `url`, a URL or the name of a local file; `None` if it is neither.
    pub(crate) fn parse(url: &str) -> Option<UrlPath> {
        if let Some(path) = local_path(url) {
            return Some(UrlPath {
                host: LOCAL_HOST.into(),
                path: format!("/{path}"),
                query: None,
            });
        }
        let url = Url::parse(url).ok().filter(Url::has_host)?;
        Some(UrlPath {
            // the parser omits the default port of the scheme
            host: url[Position::BeforeHost..Position::AfterPort].to_owned(),
            path: percent_decode_str(url.path())
                .decode_utf8_lossy()
                .into_owned(),
            query: url.query().map(str::to_owned),
        })
    }

    /// The path `host/path` under which the file is requested, with single slashes.
    fn key(&self) -> String {
        let mut key = self.host.clone();
        let mut folders = self.path.split('/').skip(1).peekable();
        while let Some(folder) = folders.next() {
            if !folder.is_empty() || folders.peek().is_none() {
                key = key + "/" + folder;
            }
        }
        key
    }
}

/// The percent-encoded path of `url` at this server, for links.
pub(crate) fn file_link(url: &str) -> Option<String> {
    let UrlPath { host, path, .. } = UrlPath::parse(url)?;
    if local_path(url).is_some() {
        let path = utf8_percent_encode(&path, IN_PATH);
        return Some(format!("/files/{host}{path}"));
    }
    let url = Url::parse(url).ok()?;
    let mut link = format!("/files/{host}{}", url.path());
    if let Some(query) = url.query() {
        link += "?";
        link += query;
    }
    Some(link)
}

/// The content of every served URL: host and path → URL → its query and the digest of the file.
#[derive(Default)]
pub(crate) struct FileTable(BTreeMap<String, BTreeMap<String, (Option<String>, Digest)>>);

impl FileTable {
    /// Adds files under all their URLs. Each URL that had other content before adds a warning.
    pub(crate) fn add(&mut self, files: &[UrlFile<'_>], warnings: &mut Vec<String>) {
        for file in files {
            for url in &file.urls {
                self.add_url(url, file.digest, warnings);
            }
        }
    }

    fn add_url(&mut self, url: &str, digest: &Digest, warnings: &mut Vec<String>) {
        let Some(path) = UrlPath::parse(url) else {
            return;
        };
        let key = path.key();
        let file = (path.query, digest.clone());
        // by URL within a path, because URLs that differ only in their queries share the path
        let previous = self.0.entry(key).or_default().insert(url.to_owned(), file);
        if let Some((_, previous)) = previous
            && previous != *digest
        {
            warnings.push(format!("{url}: serving {digest} instead of {previous}"));
        }
    }

    /// Whether there is a file at this path, with any query.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains_key(&key_of_path(path))
    }

    /// Whether there are files of this host.
    pub(crate) fn has_host(&self, host: &str) -> bool {
        // with the slash, so that other hosts whose names begin with `host` do not match
        let prefix = format!("{host}/");
        self.0
            .range(prefix.clone()..)
            .next()
            .is_some_and(|(path, _)| path.starts_with(&prefix))
    }

    /// Whether there are no files.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hosts of all files that have one, sorted.
    pub(crate) fn hosts(&self) -> BTreeSet<&str> {
        self.0
            .iter()
            .filter(|(_, urls)| urls.keys().any(|url| local_path(url).is_none()))
            .filter_map(|(path, _)| Some(path.split_once('/')?.0))
            .collect()
    }

    /// The content of a path below `/files/`. `query` must be that of the URL, or absent. Fails if
    /// no URL matches, or if several match and have different content.
    pub(crate) fn find(&self, path: &str, query: Option<&str>) -> Result<&Digest, RequestError> {
        let key = key_of_path(path);
        let query = query.filter(|query| !query.is_empty());
        let all: Vec<_> = self.0.get(&key).into_iter().flatten().collect();
        let mut matching: Vec<_> = all
            .iter()
            .copied()
            .filter(|(_, (own, _))| own.as_deref() == query)
            .collect();
        // without a query, the request means every URL with this path
        if matching.is_empty() && query.is_none() {
            matching = all;
        }
        let Some((_, (_, first))) = matching.first() else {
            return Err(unknown(format!(
                "{key} is not served here; / lists all files"
            )));
        };
        if matching.iter().any(|(_, (_, digest))| digest != first) {
            let urls: Vec<&str> = matching.iter().map(|(url, _)| url.as_str()).collect();
            return Err(unknown(format!(
                "the path is ambiguous: it means {}",
                urls.join(" or ")
            )));
        }
        Ok(first)
    }
}

/// The key of a requested path, `host/path`. apt requests `./name` and `../name` as its indexes
/// write them, and a slash twice. `..` leaves no host.
fn key_of_path(path: &str) -> String {
    let path = percent_decode_str(path).decode_utf8_lossy();
    let mut key: Vec<&str> = Vec::new();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        match part {
            // a slash at the end remains
            "." | "" if parts.peek().is_some() => {}
            ".." => key.truncate(key.len().saturating_sub(1).max(1)),
            part => key.push(part),
        }
    }
    key.join("/")
}

fn unknown(message: String) -> RequestError {
    RequestError::not_found("NAME_UNKNOWN", message)
}

/// The media type for a file name, by its extension. No returned type makes a browser run the
/// content.
pub(crate) fn media_type_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "txt" | "sha256" | "sha512" | "sha256sum" | "sha512sum" | "md5" | "asc" => {
            "text/plain; charset=utf-8"
        }
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "gz" | "tgz" => "application/gzip",
        "zst" => "application/zstd",
        "zip" => "application/zip",
        // also for .html and .svg, which a browser would run as pages of this server
        _ => "application/octet-stream",
    }
}

// The git repositories by their hosts and paths.

/// The end of a path that clients may add or leave out.
const ENDING: &str = ".git";

/// A git repository that is served.
pub(crate) struct ServedGitRepository {
    pub(crate) locked: LockedGitRepository,
    /// The digests of its large files.
    pub(crate) large_files: HashSet<Digest>,
}

/// The git repositories by `host/path`.
#[derive(Default)]
pub(crate) struct GitTable {
    repositories: BTreeMap<String, Arc<ServedGitRepository>>,
    /// The repositories whose large files are at another Git LFS server, by `host/path` of the
    /// server and by `host/path` of the repository. Several repositories may share a server.
    lfs_servers: BTreeMap<String, BTreeMap<String, Arc<ServedGitRepository>>>,
}

impl GitTable {
    /// Adds a repository. If it replaces a different one with the same host and path, a warning is
    /// added.
    pub(crate) fn add(&mut self, repository: &LockedGitRepository, warnings: &mut Vec<String>) {
        let Some(key) = key_of(repository.url()) else {
            return;
        };
        let large_files = repository.large_files.iter().flatten();
        let added = Arc::new(ServedGitRepository {
            locked: repository.clone(),
            large_files: large_files.map(|file| file.digest.clone()).collect(),
        });
        for server in repository
            .other_lfs_servers()
            .into_iter()
            .filter_map(key_of)
        {
            let sharing = self.lfs_servers.entry(server).or_default();
            sharing.insert(key.clone(), added.clone());
        }
        if let Some(before) = self.repositories.insert(key, added)
            && before.locked.digest != repository.digest
        {
            warnings.push(format!(
                "{}: serving {} instead of {}",
                repository.name, repository.digest, before.locked.digest
            ));
        }
    }

    /// The repository at `path`, which is `host/path` with or without `.git`. A lock may have both
    /// URLs as two repositories with other refs: the manifest lists one, and a submodule has the
    /// other. So the path as it is written takes precedence.
    pub(crate) fn find(&self, path: &str) -> Option<&Arc<ServedGitRepository>> {
        let path = path.trim_end_matches('/');
        self.repositories.get(path).or_else(|| {
            let other = match path.strip_suffix(ENDING) {
                Some(plain) => plain.to_owned(),
                None => format!("{path}{ENDING}"),
            };
            self.repositories.get(&other)
        })
    }

    /// The repositories that have large files at the Git LFS server `path`, which is its
    /// `host/path`: those that name it, and the one whose own server it is.
    pub(crate) fn with_lfs_server(&self, path: &str) -> Vec<Arc<ServedGitRepository>> {
        let sharing = self.lfs_servers.get(path.trim_end_matches('/'));
        let own = path
            .strip_suffix("/info/lfs")
            .and_then(|path| self.find(path));
        let sharing = sharing.into_iter().flat_map(BTreeMap::values);
        own.into_iter().chain(sharing).cloned().collect()
    }
}

/// `host/path` of a URL.
fn key_of(url: &str) -> Option<String> {
    let key = UrlPath::parse(url)?.key();
    Some(key.trim_end_matches('/').to_owned())
}

// The providers as a network mirror: `/providers/<host>/<namespace>/<type>/…`.

/// The providers of all bundles.
#[derive(Default)]
pub(crate) struct ProviderTable {
    mirror: ProviderMirror,
    files: OnceLock<BTreeMap<String, MirrorFile>>,
}

impl ProviderTable {
    /// Adds a provider. Each package that replaces other content adds a warning.
    pub(crate) fn add(&mut self, provider: &LockedProvider, warnings: &mut Vec<String>) {
        warnings.extend(self.mirror.add(provider));
    }

    /// Whether there are no providers.
    pub(crate) fn is_empty(&self) -> bool {
        self.mirror.is_empty()
    }

    /// The file at `path` below `/providers/`.
    pub(crate) fn find(&self, path: &str) -> Result<&MirrorFile, RequestError> {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let files = self.files.get_or_init(|| self.mirror.files());
        files.get(&*path).ok_or_else(|| {
            let message = format!("the provider file {path} is not served here; / lists all");
            RequestError::not_found("NAME_UNKNOWN", message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::file;
    use landfall_item::{LockedFile, LockedSidecar};

    fn table(files: &[LockedFile]) -> FileTable {
        let mut table = FileTable::default();
        files
            .iter()
            .for_each(|file| table.add(&file.files(), &mut Vec::new()));
        table
    }

    #[test]
    fn a_file_is_found_by_all_its_urls() {
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
    fn urls_with_one_path_are_distinguished_by_their_query() {
        let a = file("https://h/get?v=1", b"a");
        let b = file("https://h/get?v=2", b"b");
        let of_a = a.digest.clone();
        let of_b = b.digest.clone();
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
    fn files_next_to_the_manifest_have_no_host() {
        let beside = file("local:tool.txt", b"tool");
        let both = table(&[beside, file("https://h:8443/a/b", b"x")]);
        assert!(both.find("local/tool.txt", None).is_ok());
        assert_eq!(both.hosts(), BTreeSet::from(["h:8443"]));
    }

    #[test]
    fn links_resolve_to_their_targets() {
        let url = "https://h:8443/a%20b?x=1";
        assert_eq!(file_link(url).as_deref(), Some("/files/h:8443/a%20b?x=1"));
        let one = file(url, b"x");
        assert!(
            table(std::slice::from_ref(&one))
                .find("h:8443/a%20b", Some("x=1"))
                .is_ok()
        );
        assert_eq!(file_link("no url"), None);
    }

    #[test]
    fn repositories_whose_urls_differ_only_in_the_ending_are_both_found() {
        let mut table = GitTable::default();
        let mut warnings = Vec::new();
        for url in [
            "https://h/a",
            "https://h/a.git",
            "https://h/b.git",
            "https://h/c",
            "https://h//d//e/",
        ] {
            table.add(&LockedGitRepository::without_refs(url), &mut warnings);
        }
        assert!(warnings.is_empty(), "{warnings:?}");
        let found = |path: &str| table.find(path).map(|found| found.locked.url().to_owned());
        for (path, url) in [
            ("h/a", "https://h/a"),
            ("h/a/", "https://h/a"),
            ("h/a.git", "https://h/a.git"),
            ("h/b", "https://h/b.git"),
            ("h/c.git", "https://h/c"),
            ("h/d/e", "https://h//d//e/"),
        ] {
            assert_eq!(found(path).as_deref(), Some(url), "{path}");
        }
        assert_eq!(found("h/d"), None);
        table.add(
            &LockedGitRepository::without_refs("http://h/a"),
            &mut warnings,
        );
        assert_eq!(warnings.len(), 1);
    }
}
