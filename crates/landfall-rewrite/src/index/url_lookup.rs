//! Looks up URLs with and without placeholders.

use super::reference_index::ReferenceIndex;
use landfall_model::{Wildcards, redact_urls};
use std::collections::BTreeSet;

/// A URL that may have placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPattern<'t> {
    /// The part before the first placeholder.
    pub head: &'t str,
    /// The literal parts between placeholders, and after the last one.
    pub rest: Vec<&'t str>,
}

/// The result of looking up a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlLookup {
    /// The lock does not contain the URL.
    Unknown,
    /// The URL is kept: it already has the new form, or it is at the file server but not locked.
    /// The value is the locked URL, or the head of a pattern that matches locked URLs.
    Settled(Option<String>),
    /// The URL concerns locked files, but must not be changed, for this reason.
    Left(String),
    /// The URL refers to locked URLs, or to a host that the file server mirrors completely, and
    /// must be changed.
    Known {
        /// The locked URL, or the head of the pattern.
        item: String,
        /// The text that replaces the head.
        to: String,
        /// The locked URLs that match a URL with placeholders.
        reaches: Vec<String>,
    },
}

impl ReferenceIndex {
    /// Looks up the URL of a locked file or git repository, or a URL at the file server. The URL
    /// may have placeholders.
    pub fn lookup_url(&self, url: &UrlPattern<'_>) -> UrlLookup {
        let urls = &self.urls;
        let is_whole = url.rest.is_empty();
        let Some((location, at_site)) = urls.parts(url.head, is_whole) else {
            return UrlLookup::Unknown;
        };
        // a host with a placeholder may be any host
        if !is_whole && !location.contains('/') {
            return UrlLookup::Unknown;
        }
        // the file server has every file of a mirrored host, whether the lock contains it or not
        if urls.is_mirrored(&location)
            && !at_site
            && !urls.reverse
            && let Some(to) = self.new_url(&location, false)
        {
            return UrlLookup::Known {
                item: redact_urls(url.head),
                to,
                reaches: Vec::new(),
            };
        }
        let (item, reaches) = if is_whole {
            match urls.urls.get(&location) {
                // the paths of the file server do not contain the upstream scheme
                Some(locked) if at_site || same_scheme(locked, url.head) => {
                    (locked.clone(), Vec::new())
                }
                _ if at_site => return UrlLookup::Settled(None),
                _ if is_folder(&location, &urls.folders) || urls.has_below(&location) => {
                    return UrlLookup::Left(FOLDER.into());
                }
                _ => return UrlLookup::Unknown,
            }
        } else {
            match self.matching_urls(url, &location, at_site) {
                Ok(reaches) if !reaches.is_empty() => (redact_urls(url.head), reaches),
                _ if at_site => return UrlLookup::Settled(None),
                Ok(_) => return UrlLookup::Unknown,
                Err(why) => return UrlLookup::Left(why.into()),
            }
        };
        // the URL already has the form that a rewrite in this direction gives
        if at_site != urls.reverse {
            return UrlLookup::Settled(Some(item));
        }
        match self.new_url(&location, at_site) {
            Some(to) => UrlLookup::Known { item, to, reaches },
            None => UrlLookup::Left(
                "the site names no file server: add `files: http://…` to it, or use --files URL"
                    .into(),
            ),
        }
    }

    /// The reason to leave `url` if locked files are below it, at any depth.
    pub(crate) fn folder_of(&self, url: &str) -> Option<&'static str> {
        let (location, _) = self.urls.parts(url, true)?;
        self.urls.has_files_in(&location).then_some(FOLDER)
    }

    /// The locked URLs that the pattern `url` matches, or the reason why it matches none although
    /// locked URLs begin with its head. `None` if it does not concern locked URLs.
    pub(crate) fn reached_urls(
        &self,
        url: &UrlPattern<'_>,
    ) -> Option<Result<Vec<String>, &'static str>> {
        let (location, at_site) = self.urls.parts(url.head, url.rest.is_empty())?;
        // a host with a placeholder may be any host
        location.contains('/').then_some(())?;
        let reached = self.matching_urls(url, &location, at_site);
        (reached != Ok(Vec::new())).then_some(reached)
    }

    /// The locked URLs that the pattern `url` matches, or that are directly below a match.
    /// An error is the reason why a pattern that begins like locked URLs matches none.
    fn matching_urls(
        &self,
        url: &UrlPattern<'_>,
        location: &str,
        at_site: bool,
    ) -> Result<Vec<String>, &'static str> {
        let pattern = [&[location], url.rest.as_slice()]
            .concat()
            .join(PLACEHOLDER);
        let below = self.urls.urls.range(location.to_owned()..);
        let begin_alike = below
            .take_while(|(name, _)| name.starts_with(location))
            .filter(|(_, locked)| at_site || same_scheme(locked, url.head));
        let mut matching = Vec::new();
        let mut has_any = false;
        let mut has_deeper = false;
        for (name, locked) in begin_alike {
            has_any = true;
            match components_below(name, &pattern) {
                Some(0 | 1) => matching.push(locked.clone()),
                Some(_) => has_deeper = true,
                None => {}
            }
        }
        if matching.is_empty() && has_deeper {
            return Err(FOLDER);
        }
        if matching.is_empty() && has_any {
            return Err("the lock has URLs with this beginning, but none that this URL can match");
        }
        Ok(matching)
    }

    /// The new URL of `location`: its upstream URL if the written URL is at the file server
    /// (`at_site`), otherwise its URL at the file server. `None` if the site has no file server.
    fn new_url(&self, location: &str, at_site: bool) -> Option<String> {
        if !at_site {
            return self
                .urls
                .base
                .as_ref()
                .map(|base| format!("{base}/{location}"));
        }
        // `location` may be the head of a pattern: the next locked URL then begins with it
        let locked = self
            .urls
            .urls
            .range(location.to_owned()..)
            .next()
            .map(|(_, locked)| locked.as_str());
        let scheme = locked
            .and_then(|url| url.split_once("://"))
            .map_or("https", |(scheme, _)| scheme);
        Some(format!("{scheme}://{location}"))
    }

    /// Whether `url` is at the host of a locked URL, or at the file server.
    pub fn has_host(&self, url: &str) -> bool {
        self.urls.has_host(url)
    }
}

/// The reason to leave the URL of a folder unchanged: a program appends the file name.
const FOLDER: &str = "it is a folder of locked files, and the rest of the URL is added elsewhere";

/// Represents a placeholder in a pattern. No URL contains this byte.
const PLACEHOLDER: &str = "\0";
const PLACEHOLDERS: Wildcards = Wildcards {
    any: PLACEHOLDER.as_bytes()[0],
    one: None,
};

/// The number of path components that `name` has after those that match `pattern`. `None` if `name`
/// does not match. A placeholder matches within one component.
fn components_below(name: &str, pattern: &str) -> Option<usize> {
    let mut components = name.split('/');
    for pattern in pattern.trim_end_matches('/').split('/') {
        PLACEHOLDERS
            .matches(pattern, components.next()?)
            .then_some(())?;
    }
    Some(components.count())
}

/// Whether locked files are in the folder `location`.
fn is_folder(location: &str, folders: &BTreeSet<String>) -> bool {
    location.contains('/') && folders.contains(location.trim_end_matches('/'))
}

fn same_scheme(one: &str, other: &str) -> bool {
    let scheme = |url: &str| url.split("://").next().map(str::to_ascii_lowercase);
    scheme(one) == scheme(other)
}
