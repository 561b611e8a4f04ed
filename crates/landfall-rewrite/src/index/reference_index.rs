//! The index of all references that a lock resolves.

use super::basenames::BasenameSet;
use super::file_urls::FileUrlIndex;
use super::locked_names::{LockedName, LossCause, losses, names};
use super::repository::{IndexedImage, RepositoryMap, add};
use super::word_matcher::WordMatcher;
use landfall_item::lockfile::Lock;
use landfall_model::{Destination, DestinationMap};
use landfall_model::{Digest, ImageRef};
use std::collections::BTreeMap;

/// The references that a lock resolves, each with its replacement: the destination of an item or,
/// in reverse, the locked name for a destination.
#[derive(Debug, Clone)]
pub struct ReferenceIndex {
    /// The repositories whose references are changed, by `registry/repository` as written in texts.
    pub(super) repositories: RepositoryMap,
    /// The repositories to which references are changed. References to these repositories are kept.
    pub(super) settled: RepositoryMap,
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
                    let source = image.name();
                    let destinations = image.destinations(mapping);
                    let (delivered, upstream) = if reverse {
                        (&mut repositories, &mut settled)
                    } else {
                        (&mut settled, &mut repositories)
                    };
                    for destination in &destinations {
                        let ImageRef {
                            registry,
                            repository,
                            ..
                        } = source.clone();
                        let back = reverse.then_some(Destination {
                            registry,
                            repository,
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
        self.urls.set_base(base);
        self.with_words()
    }

    /// Adds hosts that the file server mirrors completely: all their URLs are changed, locked or
    /// not.
    #[must_use]
    pub fn with_mirrored_hosts(
        mut self,
        hosts: impl IntoIterator<Item = String>,
    ) -> ReferenceIndex {
        self.urls.add_mirrored(hosts);
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
