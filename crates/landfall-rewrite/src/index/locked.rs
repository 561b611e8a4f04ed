//! The names by which references find the items of a lock.

use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::{Destination, DestinationMap, Digest, ImageRef};
use std::borrow::Cow;

/// A name by which a reference finds a locked item.
#[derive(Debug, Clone)]
pub(crate) enum Found<'l> {
    /// An image reference, or a digest.
    Reference(ReferencedItem<'l>),
    /// A URL.
    Url {
        /// The URL.
        url: Cow<'l, str>,
        /// The name of the item that is there.
        item: &'l str,
    },
}

/// A locked item that an image reference means, as far as references can tell it from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReferencedItem<'l> {
    item: &'l dyn LockedItem,
    name: &'l ImageRef,
}

impl<'l> ReferencedItem<'l> {
    /// The reference.
    pub(crate) fn name(self) -> &'l ImageRef {
        self.name
    }

    /// The digest that the lock gives it.
    pub(crate) fn digest(self) -> &'l Digest {
        self.item.digest()
    }

    /// The tag that it has at a destination.
    pub(crate) fn destination_tag(self) -> String {
        self.item.tag()
    }

    /// Whether it is a chart.
    pub(crate) fn is_chart(self) -> bool {
        self.item.as_chart().is_some()
    }

    /// Its destinations; the first one is written.
    pub(crate) fn destinations(self, mapping: &DestinationMap) -> Vec<Destination> {
        self.item.destinations(mapping)
    }

    /// Every digest by which a reference can mean it.
    pub(crate) fn digests(self) -> impl Iterator<Item = &'l Digest> {
        self.item.digests().into_iter()
    }

    /// Whether `digest` is that of one of its configs or layers.
    pub(crate) fn has_blob(self, digest: &Digest) -> bool {
        self.item.has_blob(digest)
    }
}

/// Every name by which a reference finds an item of `lock`.
pub(crate) fn names(lock: &Lock) -> impl Iterator<Item = Found<'_>> {
    lock.items().flat_map(|item| {
        let reference = item
            .reference()
            .map(|name| Found::Reference(ReferencedItem { item, name }));
        let files = item.files();
        let first = files.first().map_or("", |file| file.name);
        let urls = files.into_iter().flat_map(|file| file.urls);
        reference
            .into_iter()
            .chain(urls.map(move |url| Found::Url { url, item: first }))
    })
}

/// Why the lock has an image's name without a digest.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LossCause<'l> {
    /// It could not be resolved; why.
    Unresolved(&'l str),
    /// The manifest accepts the loss.
    Accepted {
        /// Why.
        reason: &'l str,
        /// The last day on which it is accepted, `YYYY-MM-DD`.
        until: &'l str,
    },
}

/// The image references that `lock` has without a digest, in canonical form.
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
