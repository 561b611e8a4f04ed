//! The names by which references find the items of a lock.

use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::{Destination, DestinationMap, Digest, ImageRef};
use std::borrow::Cow;

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
    item: &'l dyn LockedItem,
    name: &'l ImageRef,
}

impl<'l> ReferencedItem<'l> {
    /// The upstream reference of the item.
    pub(crate) fn name(self) -> &'l ImageRef {
        self.name
    }

    pub(crate) fn digest(self) -> &'l Digest {
        self.item.digest()
    }

    /// The tag of the item at its destinations.
    pub(crate) fn destination_tag(self) -> String {
        self.item.tag()
    }

    /// Whether the item is a chart, not an image.
    pub(crate) fn is_chart(self) -> bool {
        self.item.as_chart().is_some()
    }

    /// The destinations of the item. References are changed to the first one.
    pub(crate) fn destinations(self, mapping: &DestinationMap) -> Vec<Destination> {
        self.item.destinations(mapping)
    }

    /// Every digest that a reference to the item may have.
    pub(crate) fn digests(self) -> impl Iterator<Item = &'l Digest> {
        self.item.digests().into_iter()
    }

    /// Whether `digest` is the digest of a config or layer of the item.
    pub(crate) fn has_blob(self, digest: &Digest) -> bool {
        self.item.has_blob(digest)
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
        let repository = item.as_git_repository().into_iter().flat_map(|repository| {
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
