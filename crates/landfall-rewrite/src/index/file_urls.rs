//! The URLs that a lock knows, and the site's file server that mirrors them:
//! `<files>/<host>/<path>`.

use std::collections::{BTreeMap, BTreeSet};

/// The URLs that a lock knows.
#[derive(Debug, Clone, Default)]
pub(super) struct FileUrls {
    /// Each without its scheme (`<host>/<path>`), with the whole URL.
    pub(super) urls: BTreeMap<String, String>,
    /// Folders of the files, without scheme and last slash.
    pub(super) folders: BTreeSet<String>,
    hosts: BTreeSet<String>,
    /// Hosts of which the file server has everything, whether the lock names it or not.
    mirrored: BTreeSet<String>,
    /// The site's file server, without a slash at its end.
    pub(super) base: Option<String>,
    /// Whether URLs at the file server become those of the lock.
    pub(super) reverse: bool,
}

impl FileUrls {
    pub(super) fn new(reverse: bool) -> FileUrls {
        FileUrls {
            reverse,
            ..FileUrls::default()
        }
    }

    pub(super) fn add(&mut self, url: &str) {
        if let Some(local) = local(url) {
            self.hosts.insert(host(&local).to_owned());
            self.folders
                .extend(local.rsplit_once('/').map(|(folder, _)| folder.to_owned()));
            self.urls.insert(local, url.to_owned());
        }
    }

    pub(super) fn set_base(&mut self, base: &str) {
        self.base = Some(base.trim_end_matches('/').to_owned());
    }

    pub(super) fn add_mirrored(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.mirrored.extend(hosts);
    }

    /// Whether the file server has everything of the host of `local`.
    pub(super) fn is_mirrored(&self, local: &str) -> bool {
        self.mirrored.contains(host(local))
    }

    /// Words, one of which every text with a known URL contains.
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

    /// The upstream `<host>/<path>` of a URL, and whether the URL is at the file server.
    pub(super) fn parts(&self, url: &str) -> Option<(String, bool)> {
        let below = self
            .base
            .as_ref()
            .and_then(|base| url.strip_prefix(base.as_str())?.strip_prefix('/'));
        match below {
            Some(below) => Some((below.to_owned(), true)),
            None => Some((local(url)?, false)),
        }
    }

    /// Whether `url` names a host that the lock has files of, or the file server.
    pub(super) fn has_host(&self, url: &str) -> bool {
        self.parts(url)
            .is_some_and(|(local, there)| there || self.hosts.contains(host(&local)))
    }
}

/// `<host>/<path>`, the host in lower case.
fn local(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find('/').unwrap_or(rest.len());
    Some(rest[..end].to_ascii_lowercase() + &rest[end..])
}

fn host(local: &str) -> &str {
    local.split('/').next().unwrap_or(local)
}
