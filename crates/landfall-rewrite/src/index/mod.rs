//! The reference index: resolves a written reference to a locked item and its replacement.

mod lookup;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod url_tests;

use self::lookup::{IndexedImage, RepositoryMap, add};
use aho_corasick::AhoCorasick;
use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::{
    Destination, DestinationMap, Digest, ImageRef, after_web_scheme, alias_hosts, normal_web_url,
    without_scheme,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub(crate) use self::lookup::{
    ReferenceLookup, ReferenceReplacement, UrlPattern, destination, has_certain_host, is_pinned,
    listed, pin, replaced,
};
pub(crate) use landfall_model::reference_names;

// The index of all references that a lock resolves.

/// The references that a lock resolves, each with its replacement: the destination of an item or,
/// in reverse, the locked name for a destination.
#[derive(Debug, Clone)]
pub struct ReferenceIndex {
    /// The repositories whose references are changed, by `registry/repository` as written in texts.
    repositories: RepositoryMap,
    /// The repositories to which references are changed. References to these repositories are kept.
    settled: RepositoryMap,
    /// The names that the lock lists without a digest, each with the reason.
    pub(super) lost: BTreeMap<String, String>,
    /// The last path components of all names above, which rule out most scalars of a document.
    pub(super) basenames: BasenameSet,
    /// The digest of each trimmed index that was delivered, by the digest of the whole index.
    pub(super) replaced: BTreeMap<Digest, Digest>,
    pub(super) urls: FileUrlIndex,
    words: WordMatcher,
}

impl ReferenceIndex {
    /// Maps the references of `lock` to their destinations by `mapping`.
    pub fn new(lock: &Lock, mapping: &DestinationMap) -> ReferenceIndex {
        ReferenceIndex::build(lock, mapping, false)
    }

    /// Maps the destinations by `mapping` back to the names in `lock`.
    pub fn reverse(lock: &Lock, mapping: &DestinationMap) -> ReferenceIndex {
        ReferenceIndex::build(lock, mapping, true)
    }

    fn build(lock: &Lock, mapping: &DestinationMap, reverse: bool) -> ReferenceIndex {
        let mut repositories = RepositoryMap::new();
        let mut settled = RepositoryMap::new();
        let mut urls = FileUrlIndex::new(reverse);
        for found in names(lock) {
            match found {
                LockedName::Url { url, .. } => urls.add(&url),
                LockedName::Reference(image) => {
                    let source = image.name;
                    let destinations = image.item.destinations(mapping);
                    let (delivered, upstream) = if reverse {
                        (&mut repositories, &mut settled)
                    } else {
                        (&mut settled, &mut repositories)
                    };
                    for destination in &destinations {
                        let back = reverse.then(|| Destination {
                            registry: source.registry.clone(),
                            repository: source.repository.clone(),
                        });
                        add(
                            delivered,
                            destination.to_string(),
                            IndexedImage::new(image, back.into_iter().collect()),
                        );
                    }
                    // in reverse, references are changed to this name, so it has no destinations
                    let to = if reverse { Vec::new() } else { destinations };
                    add(upstream, source.name(), IndexedImage::new(image, to));
                }
            }
        }
        // reported for references to these names instead of `not in the lock`
        let lost = losses(lock).map(|(name, cause)| match cause {
            LossCause::Unresolved(cause) => {
                (name, format!("the lock could not resolve it: {cause}"))
            }
            LossCause::Accepted { reason, .. } => (
                name,
                format!("the manifest accepts that it is missing: {reason}"),
            ),
        });
        let lost: BTreeMap<String, String> = lost.collect();
        let basenames =
            BasenameSet::new(repositories.keys().chain(settled.keys()).chain(lost.keys()));
        let replaced = BTreeMap::new();
        let index = ReferenceIndex {
            repositories,
            settled,
            lost,
            basenames,
            replaced,
            urls,
            words: WordMatcher::default(),
        };
        index.with_words()
    }

    /// Adds the file server to which URLs of locked files are changed. Below `base`, it serves
    /// `/<host>/<path>`.
    #[must_use]
    pub fn with_files(mut self, base: &str) -> ReferenceIndex {
        let base = base.trim_end_matches('/');
        self.urls.base = Some(normal_web_url(base).unwrap_or_else(|| base.to_owned()));
        self.with_words()
    }

    /// Adds hosts that the file server mirrors completely: all their URLs are changed, locked or
    /// not.
    #[must_use]
    pub fn with_mirrored_hosts(
        mut self,
        hosts: impl IntoIterator<Item = String>,
    ) -> ReferenceIndex {
        self.urls.mirrored.extend(hosts);
        self.with_words()
    }

    /// Adds digests that a push replaced, in pairs: the digest of a whole index, and the digest of
    /// its trimmed index.
    #[must_use]
    pub fn with_replaced(
        mut self,
        replaced: impl IntoIterator<Item = (Digest, Digest)>,
    ) -> ReferenceIndex {
        self.replaced = replaced.into_iter().collect();
        self
    }

    fn with_words(mut self) -> ReferenceIndex {
        let names = self
            .repositories
            .keys()
            .chain(self.settled.keys())
            .chain(self.lost.keys());
        self.words = WordMatcher::new(names, self.urls.words());
        self
    }

    /// Whether `text` may contain a known reference. If not, it need not be read.
    pub fn may_be_in(&self, text: &str) -> bool {
        self.words.is_in(text)
    }
}

// The names by which references find the items of a lock.

/// A name by which a reference finds a locked item.
#[derive(Debug, Clone)]
pub(crate) enum LockedName<'l> {
    /// The reference of an image or chart, with its digests.
    Reference(ReferencedItem<'l>),
    /// A URL of a file or a git repository.
    Url {
        /// The URL, complete with scheme.
        url: Cow<'l, str>,
        /// The name of the item with this URL.
        item: &'l str,
    },
}

/// A locked item that has an image reference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReferencedItem<'l> {
    pub(crate) item: LockedItem<'l>,
    /// The upstream reference of the item.
    pub(crate) name: &'l ImageRef,
}

impl ReferencedItem<'_> {
    /// Whether a reference with this digest or, if it has none, this tag is one to the item.
    pub(crate) fn has_pin(self, digest: Option<&Digest>, tag: Option<&str>) -> bool {
        match (digest, tag) {
            (Some(digest), _) => self.item.digests().contains(&digest),
            (None, Some(tag)) => self.item.tag() == tag,
            (None, None) => true,
        }
    }
}

/// Every name by which a reference finds an item of `lock`.
pub(crate) fn names(lock: &Lock) -> impl Iterator<Item = LockedName<'_>> {
    lock.items().flat_map(|item| {
        let reference = item
            .reference()
            .map(|name| LockedName::Reference(ReferencedItem { item, name }));
        let files = item.files();
        let first = files.first().map_or("", |file| file.name);
        let urls = files.into_iter().flat_map(|file| file.urls);
        let repository = match item {
            LockedItem::Git(repository) => Some(repository),
            _ => None,
        };
        let repository = repository.into_iter().flat_map(|repository| {
            let urls = repository.urls().into_iter();
            urls.map(|url| LockedName::Url {
                url: url.into(),
                item: &repository.name,
            })
        });
        reference
            .into_iter()
            .chain(urls.map(move |url| LockedName::Url { url, item: first }))
            .chain(repository)
    })
}

/// The reason why an image of the lock has no digest.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LossCause<'l> {
    /// The image could not be resolved, for this reason.
    Unresolved(&'l str),
    /// The manifest accepts that the image is missing.
    Accepted {
        /// The reason in the manifest.
        reason: &'l str,
        /// The last day on which it is accepted, `YYYY-MM-DD`.
        until: &'l str,
    },
}

/// The canonical image references that `lock` lists without a digest.
pub(crate) fn losses(lock: &Lock) -> impl Iterator<Item = (String, LossCause<'_>)> {
    let unresolved = lock
        .unresolved
        .iter()
        .map(|item| (&item.name, LossCause::Unresolved(&item.cause)));
    let accepted = lock.missing.iter().map(|item| {
        (
            &item.name,
            LossCause::Accepted {
                reason: &item.reason,
                until: &item.until,
            },
        )
    });
    unresolved
        .chain(accepted)
        .filter_map(|(name, cause)| Some((name.parse::<ImageRef>().ok()?.to_string(), cause)))
}

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

    /// Whether the file server mirrors the host of `location` completely.
    pub(super) fn is_mirrored(&self, location: &str) -> bool {
        self.mirrored.contains(host(location))
    }

    /// Returns words such that every text with a known URL contains at least one of them.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let base = self.base.as_deref().map(without_scheme);
        self.hosts
            .iter()
            .chain(&self.mirrored)
            .map(String::as_str)
            .chain(base)
    }

    /// The upstream `<host>/<path>` of a whole URL, or of the part before its first placeholder,
    /// and whether the URL is at the file server.
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
        is_folder && self.has_beginning(location)
    }

    fn has_beginning(&self, start: &str) -> bool {
        let mut from = self.urls.range(start.to_owned()..);
        from.next().is_some_and(|(name, _)| name.starts_with(start))
    }

    /// Whether locked files are in the folder or host `location`, at any depth.
    pub(super) fn has_files_in(&self, location: &str) -> bool {
        self.has_beginning(&format!("{}/", location.trim_end_matches('/')))
    }

    /// Whether `url` is at the host of a locked file, or at the file server.
    pub(super) fn has_host(&self, url: &str) -> bool {
        self.parts(url, false)
            .is_some_and(|(location, at_site)| at_site || self.hosts.contains(host(&location)))
    }
}

/// The normal form of a URL. Of a part of a URL, only scheme, host and port are changed: a dot at
/// its end need not be a segment.
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

// The last path components of known names. Comparing them rules out nearly every scalar of a
// document before it is parsed as a reference.

/// A set of last path components with a fast negative answer.
#[derive(Debug, Clone)]
pub(super) struct BasenameSet {
    names: HashSet<String>,
    /// The lengths of the names by their first byte: one bit for each length. The last bit is set
    /// for all longer names, too.
    lengths: Vec<u64>,
}

impl BasenameSet {
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n String>) -> BasenameSet {
        let mut known = BasenameSet {
            names: HashSet::new(),
            lengths: vec![0; 256],
        };
        for name in names.map(|name| basename(name)) {
            if let Some(first) = name.bytes().next() {
                known.lengths[usize::from(first)] |= length(name);
                known.names.insert(name.to_owned());
            }
        }
        known
    }

    /// Whether the last path component of the reference `text` is in the set.
    pub(super) fn has(&self, text: &str) -> bool {
        let name = basename(text);
        let first = name
            .bytes()
            .next()
            .map_or(0, |first| self.lengths[usize::from(first)]);
        first & length(name) != 0 && self.names.contains(name)
    }
}

fn length(name: &str) -> u64 {
    1 << name.len().min(63)
}

/// The last path component of a reference, without tag and digest.
pub(super) fn basename(text: &str) -> &str {
    let mut start = 0;
    let mut end = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' => (start, end) = (at + 1, None),
            b':' => end = end.or(Some(at)),
            b'@' => {
                end = end.or(Some(at));
                break;
            }
            _ => {}
        }
    }
    &text[start..end.unwrap_or(text.len())]
}

// A set of words such that every text with a known reference contains at least one of them. Texts
// without any of them need not be read.

/// Words of texts in which references may be hidden: by encoded content, by escaped line breaks, or
/// by escapes of the characters that references have (ASCII from `-` to `z`).
const HIDING: [&str; 19] = [
    "b64",
    "base64",
    "secret",
    "binarydata",
    "!!binary",
    ":binary>",
    "encoding",
    "userdata",
    "user_data",
    "customdata",
    "\\u00",
    "\\x2",
    "\\x3",
    "\\x4",
    "\\x5",
    "\\x6",
    "\\x7",
    "\\\n",
    "\\\r\n",
];

/// Finds the words in a text.
#[derive(Debug, Clone, Default)]
pub(super) struct WordMatcher(Option<AhoCorasick>);

impl WordMatcher {
    /// A matcher for texts with one of the words `urls`, or with a reference to one of the
    /// repositories `names`, even if the reference is split into several values. Texts with a word
    /// of `HIDING` match too.
    pub(super) fn new<'n>(
        names: impl Iterator<Item = &'n String>,
        urls: impl Iterator<Item = &'n str>,
    ) -> WordMatcher {
        let words: BTreeSet<&str> = names
            .flat_map(|name| {
                // the registry of a split reference is a value of its own
                let host = name.split('/').next().unwrap_or(name);
                let parts = [basename(name), first(name), host];
                parts
                    .into_iter()
                    .chain(first(name).split(':').take(1))
                    .chain(alias_hosts(host).map(|host| -> &str { host }))
            })
            .chain(urls)
            .chain(HIDING)
            .collect();
        WordMatcher(
            AhoCorasick::builder()
                // hosts and the words in `HIDING` may have upper-case letters
                .ascii_case_insensitive(true)
                .build(words)
                .ok(),
        )
    }

    /// Whether one of the words is in `text`.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|words| words.is_match(text))
    }
}

/// The first component of the reference `name`, without `docker.io`, which is usually omitted.
fn first(name: &str) -> &str {
    let name = name.strip_prefix("docker.io/").unwrap_or(name);
    name.split('/').next().unwrap_or(name)
}
