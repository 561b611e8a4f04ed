//! The references that a lock knows, by name.

use super::basenames::Basenames;
use super::file_urls::FileUrls;
use super::locked::{Found, LossCause, losses, names};
use super::repository::{IndexedImage, Repositories, add};
use super::words::Words;
use landfall_item::lockfile::Lock;
use landfall_model::{Destination, DestinationMap};
use landfall_model::{Digest, ImageRef};
use std::collections::BTreeMap;

/// The references that a lock knows, each with what replaces it: the destination that a mapping
/// gives it or, in reverse, the locked name for a destination.
#[derive(Debug, Clone)]
pub struct ReferenceIndex {
    /// What is rewritten, by `registry/repository` as texts have it.
    pub(super) repositories: Repositories,
    /// The names at the other end: references to these are right already.
    pub(super) settled: Repositories,
    /// Names that the lock has without a digest, and why.
    pub(super) lost: BTreeMap<String, String>,
    /// The last path components of all names above. They rule out most scalars of a document.
    pub(super) basenames: Basenames,
    /// Old digest -> new digest, where a trimmed index was delivered.
    pub(super) replaced: BTreeMap<Digest, Digest>,
    pub(super) urls: FileUrls,
    words: Words,
}

impl ReferenceIndex {
    /// The references that `lock` knows, with the destinations of `mapping`.
    pub fn new(lock: &Lock, mapping: &DestinationMap) -> ReferenceIndex {
        ReferenceIndex::build(lock, mapping, false)
    }

    /// The way back: what stands at the destinations of `mapping` becomes what `lock` names it.
    pub fn reverse(lock: &Lock, mapping: &DestinationMap) -> ReferenceIndex {
        ReferenceIndex::build(lock, mapping, true)
    }

    fn build(lock: &Lock, mapping: &DestinationMap, reverse: bool) -> ReferenceIndex {
        let (mut repositories, mut settled) = (Repositories::new(), Repositories::new());
        let mut urls = FileUrls::new(reverse);
        for found in names(lock) {
            match found {
                Found::Url { url, .. } => urls.add(&url),
                Found::Reference(image) => {
                    let source = image.name();
                    let destinations = image.destinations(mapping);
                    let (there, here) = match reverse {
                        true => (&mut repositories, &mut settled),
                        false => (&mut settled, &mut repositories),
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
                            there,
                            destination.to_string(),
                            IndexedImage::new(image, back.into_iter().collect()),
                        );
                    }
                    let to = if reverse { Vec::new() } else { destinations };
                    add(here, source.name(), IndexedImage::new(image, to));
                }
            }
        }
        let lost = losses(lock).map(|(name, cause)| match cause {
            LossCause::Unresolved(cause) => {
                (name, format!("the lock could not resolve it: {cause}"))
            }
            LossCause::Accepted { reason, .. } => {
                (name, format!("it is an accepted loss: {reason}"))
            }
        });
        let lost: BTreeMap<String, String> = lost.collect();
        let basenames =
            Basenames::new(repositories.keys().chain(settled.keys()).chain(lost.keys()));
        let replaced = BTreeMap::new();
        let index = ReferenceIndex {
            repositories,
            settled,
            lost,
            basenames,
            replaced,
            urls,
            words: Words::default(),
        };
        index.with_words()
    }

    /// With the file server that URLs of locked files are rewritten to: any URL that answers
    /// `/<host>/<path>`.
    #[must_use]
    pub fn with_files(mut self, base: &str) -> ReferenceIndex {
        self.urls.set_base(base);
        self.with_words()
    }

    /// With hosts of which the file server has everything: each of their URLs is rewritten, locked
    /// or not.
    #[must_use]
    pub fn with_mirrored_hosts(
        mut self,
        hosts: impl IntoIterator<Item = String>,
    ) -> ReferenceIndex {
        self.urls.add_mirrored(hosts);
        self.with_words()
    }

    /// With digests that a push replaced: that of a whole index -> that of the trimmed one.
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
        self.words = Words::new(names, self.urls.words());
        self
    }

    /// Whether `text` may contain a known reference. If not, it is not read any further.
    pub fn may_be_in(&self, text: &str) -> bool {
        self.words.is_in(text)
    }
}
