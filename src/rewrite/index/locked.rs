//! The names by which references find the items of a lock. Only this file knows what an item looks like.

use crate::lockfile::{Image, Lock};
use crate::model::{Digest, ImageRef};

/// A name by which a reference finds a locked item.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'l> {
    /// An image, by its reference or by a digest.
    Image(LockedImage<'l>),
    /// A URL.
    Url {
        /// The URL.
        url: &'l str,
        /// The name of the item that is there.
        item: &'l str,
    },
}

/// A locked image, as far as references can tell it from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockedImage<'l>(&'l Image);

impl<'l> LockedImage<'l> {
    /// Its name in the lock.
    pub(crate) fn name(self) -> &'l ImageRef {
        &self.0.name
    }

    /// The digest of its index, or of its manifest where there is no index.
    pub(crate) fn digest(self) -> &'l Digest {
        &self.0.digest
    }

    /// The tag that it has at a destination.
    pub(crate) fn destination_tag(self) -> String {
        self.0.destination_tag()
    }

    /// Every digest by which a reference can mean it: its index, its trimmed index and its manifests.
    pub(crate) fn digests(self) -> impl Iterator<Item = &'l Digest> {
        let children = self.0.manifests.iter().map(|child| &child.digest);
        let trimmed = self.0.trimmed.iter().map(|trimmed| &trimmed.digest);
        children.chain([&self.0.digest]).chain(trimmed)
    }

    /// Whether `digest` is that of one of its configs or layers.
    pub(crate) fn has_blob(self, digest: &Digest) -> bool {
        self.0.blobs.iter().any(|blob| blob.digest == *digest)
    }
}

/// Every name by which a reference finds an item of `lock`.
pub(crate) fn names(lock: &Lock) -> impl Iterator<Item = Found<'_>> {
    let images = lock.images.iter().map(|image| Found::Image(LockedImage(image)));
    let urls = lock.files.iter().flat_map(|file| {
        let sidecars = file.sidecars.iter().map(|sidecar| &sidecar.url);
        let urls = std::iter::once(&file.name).chain(&file.also).chain(sidecars);
        urls.map(|url| Found::Url { url, item: &file.name })
    });
    images.chain(urls)
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
    let unresolved = lock.unresolved.iter().map(|item| (&item.name, LossCause::Unresolved(&item.cause)));
    let accepted = lock
        .missing
        .iter()
        .map(|item| (&item.name, LossCause::Accepted { reason: &item.reason, until: &item.until }));
    unresolved
        .chain(accepted)
        .filter_map(|(name, cause)| Some((name.parse::<ImageRef>().ok()?.to_string(), cause)))
}
