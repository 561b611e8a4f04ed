//! Looks up URLs: whole ones, and those with placeholders in them.

use super::reference_index::ReferenceIndex;

/// A URL that may have placeholders, which are filled in when it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPattern<'t> {
    /// Up to the first placeholder.
    pub head: &'t str,
    /// The literal parts between placeholders, and after the last one.
    pub rest: Vec<&'t str>,
}

/// What the index says about a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlLookup {
    /// The lock has nothing like it.
    Unknown,
    /// It is right as it is; the item that it means, where that is certain.
    Settled(Option<String>),
    /// It concerns something locked, but must not be changed; why.
    Left(String),
    /// It means locked URLs and is to be written differently.
    Known {
        /// The locked URL, or the head of the pattern.
        item: String,
        /// What replaces the head.
        to: String,
        /// The locked URLs that it can become, where it has placeholders.
        reaches: Vec<String>,
    },
}

impl ReferenceIndex {
    /// What `url` means.
    pub fn lookup_url(&self, url: &UrlPattern<'_>) -> UrlLookup {
        let urls = &self.urls;
        let whole = url.rest.is_empty();
        let Some((local, there)) = urls.parts(url.head) else {
            return UrlLookup::Unknown;
        };
        // a placeholder within the host decides where it goes
        if !whole && !local.contains('/') {
            return UrlLookup::Unknown;
        }
        if urls.is_mirrored(&local)
            && let Some(to) = self
                .moved(&local, false)
                .filter(|_| !there && !urls.reverse)
        {
            return UrlLookup::Known {
                item: url.head.to_owned(),
                to,
                reaches: Vec::new(),
            };
        }
        let is_same = |locked: &str| there || same_scheme(locked, url.head);
        let mut reaches = Vec::new();
        let item = match whole {
            true => urls
                .urls
                .get(&local)
                .filter(|locked| is_same(locked))
                .cloned(),
            false => {
                let known = || {
                    let below = urls.urls.range(local.clone()..);
                    below
                        .take_while(|(name, _)| name.starts_with(&local))
                        .filter(|(_, locked)| is_same(locked))
                };
                let pattern = [&[local.as_str()], url.rest.as_slice()]
                    .concat()
                    .join(PLACEHOLDER);
                let reached = |(name, locked): (&String, &String)| {
                    Some((reach(name, &pattern)?, locked.clone()))
                };
                let reached: Vec<(usize, String)> = known().filter_map(reached).collect();
                reaches.extend(
                    reached
                        .iter()
                        .filter(|(more, _)| *more <= 1)
                        .map(|(_, locked)| locked.clone()),
                );
                if reaches.is_empty() && known().next().is_some() {
                    let why = match reached.is_empty() {
                        true => "the lock has URLs that begin so, but none that this can become",
                        false => "locked files stand below this; what is put after it is not seen",
                    };
                    return if there {
                        UrlLookup::Settled(None)
                    } else {
                        UrlLookup::Left(why.into())
                    };
                }
                reaches.first().map(|_| url.head.to_owned())
            }
        };
        let Some(item) = item else {
            let is_folder =
                whole && local.contains('/') && urls.folders.contains(local.trim_end_matches('/'));
            return match (there, is_folder) {
                (true, _) => UrlLookup::Settled(None),
                (false, true) => {
                    let why = "locked files stand in this folder; what is put after it is not seen";
                    UrlLookup::Left(why.into())
                }
                (false, false) => UrlLookup::Unknown,
            };
        };
        if there != urls.reverse {
            return UrlLookup::Settled(Some(item));
        }
        match self.moved(&local, there) {
            Some(to) => UrlLookup::Known { item, to, reaches },
            None => {
                let why =
                    "the site names no file server: add `files: http://…` to it, or --files URL";
                UrlLookup::Left(why.into())
            }
        }
    }

    /// The URL of `local` at the other end: upstream for one at the file server, which `there`
    /// says. `None` where there is no file server.
    fn moved(&self, local: &str, there: bool) -> Option<String> {
        if !there {
            return self
                .urls
                .base
                .as_ref()
                .map(|base| format!("{base}/{local}"));
        }
        let locked = self
            .urls
            .urls
            .range(local.to_owned()..)
            .next()
            .map(|(_, locked)| locked.as_str());
        let scheme = locked
            .and_then(|url| url.split_once("://"))
            .map_or("https", |(scheme, _)| scheme);
        Some(format!("{scheme}://{local}"))
    }

    /// Whether `url` names a host that the lock has files of, or the file server.
    pub fn has_host(&self, url: &str) -> bool {
        self.urls.has_host(url)
    }
}

/// Stands for a placeholder in a pattern.
const PLACEHOLDER: &str = "\0";

/// How many components `name` has below what `pattern` can become; `None` where it cannot become
/// the beginning of `name`. A placeholder stands for something within one component.
fn reach(name: &str, pattern: &str) -> Option<usize> {
    let mut components = name.split('/');
    for pattern in pattern.trim_end_matches('/').split('/') {
        fits(components.next()?, pattern).then_some(())?;
    }
    Some(components.count())
}

/// Whether `component` has the literal parts of `pattern` in their order, and begins and ends as it
/// does.
fn fits(component: &str, pattern: &str) -> bool {
    let Some((first, others)) = pattern.split_once(PLACEHOLDER) else {
        return component == pattern;
    };
    let (between, last) = others.rsplit_once(PLACEHOLDER).unwrap_or(("", others));
    let mut rest = component.strip_prefix(first);
    for literal in between.split(PLACEHOLDER) {
        rest = rest.and_then(|rest| Some(rest.split_once(literal)?.1));
    }
    rest.is_some_and(|rest| rest.ends_with(last))
}

fn same_scheme(one: &str, other: &str) -> bool {
    let scheme = |url: &str| url.split("://").next().map(str::to_ascii_lowercase);
    scheme(one) == scheme(other)
}
