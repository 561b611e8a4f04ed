//! The URLs of a lock, and their URLs at the site's file server: `<files>/<host>/<path>`.

use landfall_model::{after_web_scheme, normal_web_url};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The URLs of a lock.
#[derive(Debug, Clone, Default)]
pub(super) struct FileUrlIndex {
    /// The whole URLs by their part after the scheme (`<host>/<path>`).
    pub(super) urls: BTreeMap<String, String>,
    /// The folders of the files, without scheme and trailing slash.
    pub(super) folders: BTreeSet<String>,
    hosts: BTreeSet<String>,
    /// Hosts that the file server mirrors completely, including URLs that are not in the lock.
    mirrored: BTreeSet<String>,
    /// The URL of the site's file server, without a trailing slash.
    pub(super) base: Option<String>,
    /// Whether URLs of the file server are changed to those of the lock, not the other way round.
    pub(super) reverse: bool,
}

impl FileUrlIndex {
    pub(super) fn new(reverse: bool) -> FileUrlIndex {
        FileUrlIndex {
            reverse,
            ..FileUrlIndex::default()
        }
    }

    pub(super) fn add(&mut self, url: &str) {
        if let Some(location) = location(&normal_form(url, true)) {
            self.hosts.insert(host(&location).to_owned());
            self.folders.extend(
                location
                    .rsplit_once('/')
                    .map(|(folder, _)| folder.to_owned()),
            );
            self.urls.insert(location, url.to_owned());
        }
    }

    pub(super) fn set_base(&mut self, base: &str) {
        let base = base.trim_end_matches('/');
        self.base = Some(normal_web_url(base).unwrap_or_else(|| base.to_owned()));
    }

    pub(super) fn add_mirrored(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.mirrored.extend(hosts);
    }

    /// Whether the file server mirrors the host of `location` completely.
    pub(super) fn is_mirrored(&self, location: &str) -> bool {
        self.mirrored.contains(host(location))
    }

    /// Returns words such that every text with a known URL contains at least one of them.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let base = self
            .base
            .as_deref()
            .map(|base| base.split_once("://").map_or(base, |(_, rest)| rest));
        self.hosts
            .iter()
            .chain(&self.mirrored)
            .map(String::as_str)
            .chain(base)
    }

    /// The upstream `<host>/<path>` of a whole URL, or of the part before its first placeholder, and
    /// whether the URL is at the file server.
    pub(super) fn parts(&self, url: &str, is_whole: bool) -> Option<(String, bool)> {
        let normal = normal_form(url, is_whole);
        let url = &*normal;
        let below = self
            .base
            .as_ref()
            .and_then(|base| url.strip_prefix(base.as_str())?.strip_prefix('/'));
        match below {
            Some(below) => Some((below.to_owned(), true)),
            None => Some((location(url)?, false)),
        }
    }

    /// Whether `location` is written as a folder, with a slash at its end, and has locked files
    /// below it. A host alone is not a folder.
    pub(super) fn has_below(&self, location: &str) -> bool {
        let is_folder = location
            .strip_suffix('/')
            .is_some_and(|folder| folder.contains('/'));
        let mut below = self.urls.range(location.to_owned()..);
        is_folder
            && below
                .next()
                .is_some_and(|(name, _)| name.starts_with(location))
    }

    /// Whether locked files are in the folder or host `location`, at any depth.
    pub(super) fn has_files_in(&self, location: &str) -> bool {
        let folder = format!("{}/", location.trim_end_matches('/'));
        let mut below = self.urls.range(folder.clone()..);
        below
            .next()
            .is_some_and(|(name, _)| name.starts_with(&folder))
    }

    /// Whether `url` is at the host of a locked file, or at the file server.
    pub(super) fn has_host(&self, url: &str) -> bool {
        self.parts(url, false)
            .is_some_and(|(location, at_site)| at_site || self.hosts.contains(host(&location)))
    }
}

/// The normal form of a URL. Of a part of a URL, only scheme, host and port are changed: a dot at its
/// end need not be a segment.
fn normal_form(url: &str, is_whole: bool) -> Cow<'_, str> {
    let end = match after_web_scheme(url) {
        Some(rest) if !is_whole => {
            let start = url.len() - rest.len();
            rest.find('/').map_or(url.len(), |slash| start + slash)
        }
        _ => url.len(),
    };
    // a host that a placeholder ends may have more characters, and no other port
    let is_cut = !is_whole && end == url.len();
    match normal_web_url(&url[..end]).filter(|_| !is_cut) {
        Some(normal) => Cow::Owned(normal + &url[end..]),
        None => Cow::Borrowed(url),
    }
}

/// The URL without its scheme (`<host>/<path>`), the host in lower case.
fn location(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find('/').unwrap_or(rest.len());
    Some(rest[..end].to_ascii_lowercase() + &rest[end..])
}

fn host(location: &str) -> &str {
    location.split('/').next().unwrap_or(location)
}
