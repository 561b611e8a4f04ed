//! URLs of locked files, and where the site has them: `<files>/<host>/<path>`.

use super::Verdict;
use crate::lockfile::Lock;
use std::collections::{BTreeMap, BTreeSet};

/// The URLs that a lock knows.
#[derive(Debug, Clone, Default)]
pub(in crate::rewrite) struct Urls {
    /// Each without its scheme (`<host>/<path>`), with the whole URL.
    urls: BTreeMap<String, String>,
    /// Folders of the files, without scheme and last slash.
    folders: BTreeSet<String>,
    hosts: BTreeSet<String>,
    /// The site's file server, without a slash at its end.
    base: Option<String>,
    reverse: bool,
}

/// A URL up to what is put in when it is used, and the literal parts after that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rewrite) struct Heads<'t> {
    /// Up to the first placeholder.
    pub(in crate::rewrite) head: &'t str,
    /// Between placeholders, and after the last one.
    pub(in crate::rewrite) rest: Vec<&'t str>,
}

/// What is written for a URL, or for the head of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rewrite) struct Place {
    pub(in crate::rewrite) verdict: Verdict,
    /// What is written.
    pub(in crate::rewrite) to: String,
    /// The locked URLs that it can become, where it has placeholders.
    pub(in crate::rewrite) reaches: Vec<String>,
}

impl Urls {
    pub(super) fn new(lock: &Lock) -> Urls {
        let mut urls = Urls::default();
        for file in &lock.files {
            let sidecars = file.sidecars.iter().map(|sidecar| &sidecar.url);
            for url in std::iter::once(&file.name).chain(&file.also).chain(sidecars) {
                if let Some(local) = local(url) {
                    urls.hosts.insert(host(&local).to_owned());
                    urls.folders.extend(local.rsplit_once('/').map(|(folder, _)| folder.to_owned()));
                    urls.urls.insert(local, url.clone());
                }
            }
        }
        urls
    }

    pub(super) fn reverse(lock: &Lock) -> Urls {
        Urls { reverse: true, ..Urls::new(lock) }
    }

    pub(super) fn set_base(&mut self, base: &str) {
        self.base = Some(base.trim_end_matches('/').to_owned());
    }

    /// Words without one of which no text has a known URL.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let base = self.base.as_deref().map(|base| base.split_once("://").map_or(base, |(_, rest)| rest));
        self.hosts.iter().map(String::as_str).chain(base)
    }

    /// `<host>/<path>` of a URL as texts have it before it is rewritten, and whether it stands at the file
    /// server.
    fn parts(&self, url: &str) -> Option<(String, bool)> {
        let below = self.base.as_ref().and_then(|base| url.strip_prefix(base.as_str())?.strip_prefix('/'));
        match below {
            Some(below) => Some((below.to_owned(), true)),
            None => Some((local(url)?, false)),
        }
    }
}

impl super::Known {
    /// What `url` means.
    pub(in crate::rewrite) fn lookup_url(&self, url: &Heads<'_>) -> Place {
        let place = |verdict, to, reaches| Place { verdict, to, reaches };
        let unknown = || place(Verdict::Unknown, String::new(), vec![]);
        let urls = &self.urls;
        let Some((local, there)) = urls.parts(url.head) else { return unknown() };
        // a placeholder within the host decides where it goes
        if !url.rest.is_empty() && !local.contains('/') {
            return unknown();
        }
        let mut reached = Vec::new();
        let item = match url.rest.is_empty() {
            true => urls.urls.get(&local).filter(|whole| there || same_scheme(whole, url.head)).cloned(),
            false => {
                let fits = |name: &&String| fits(&name[local.len()..], &url.rest);
                let known =
                    || urls.urls.range(local.clone()..).take_while(|(name, _)| name.starts_with(&local));
                let all = known().filter(|(_, whole)| there || same_scheme(whole, url.head));
                reached = all.filter(|(name, _)| fits(name)).map(|(_, whole)| whole.clone()).collect();
                if reached.is_empty() && known().next().is_some() {
                    let why = "the lock has URLs that begin so, but none that this can become".into();
                    return place(
                        if there { Verdict::Settled(None) } else { Verdict::Left(why) },
                        String::new(),
                        reached,
                    );
                }
                reached.first().map(|_| url.head.to_owned())
            }
        };
        let Some(item) = item else {
            return match (there, urls.folders.contains(local.trim_end_matches('/'))) {
                (true, _) => place(Verdict::Settled(None), String::new(), reached),
                (false, true) if url.rest.is_empty() && local.contains('/') => {
                    let why = "locked files stand in this folder; what is put after it is not seen".into();
                    place(Verdict::Left(why), String::new(), reached)
                }
                _ => unknown(),
            };
        };
        let settled = there != urls.reverse;
        if settled {
            return place(Verdict::Settled(Some(item)), String::new(), reached);
        }
        let to = match (&urls.base, there) {
            (Some(base), false) => format!("{base}/{local}"),
            (_, true) => {
                let whole = urls.urls.range(local.clone()..).next().map(|(_, whole)| whole.as_str());
                let scheme =
                    whole.and_then(|whole| whole.split_once("://")).map_or("https", |(scheme, _)| scheme);
                format!("{scheme}://{local}")
            }
            (None, false) => {
                let why = "the site names no file server: add `files: http://…` to it, or --files URL".into();
                return place(Verdict::Left(why), String::new(), reached);
            }
        };
        place(Verdict::Known(super::Meant { item, to: None, digest: None }), to, reached)
    }

    /// Whether `url` names a host that the lock has files of, or the file server.
    pub(in crate::rewrite) fn has_host(&self, url: &str) -> bool {
        self.urls.parts(url).is_some_and(|(local, there)| there || self.urls.hosts.contains(host(&local)))
    }
}

/// Whether what follows a head can be `rest`: its literal parts in their order, anything between them and
/// after them, which may be put together elsewhere.
fn fits(mut text: &str, rest: &[&str]) -> bool {
    rest.iter().all(|part| match text.find(part) {
        Some(at) => {
            text = &text[at + part.len()..];
            true
        }
        None => false,
    })
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

fn same_scheme(one: &str, other: &str) -> bool {
    let scheme = |url: &str| url.split("://").next().map(str::to_ascii_lowercase);
    scheme(one) == scheme(other)
}
