//! What a kind of item is: what everybody asks of one item, and what a lock and a manifest ask of its kind.

use super::resolver::{Cause, Resolver};
use crate::content::{BlobRead, Entry};
use crate::model::{Destination, Digest, ImageRef, Mapping};
use crate::report::Kind;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// One locked item, of whatever kind. Everybody outside of the item's own file asks this trait.
pub trait LockedItem: Send + Sync {
    /// The word for its kind.
    fn kind(&self) -> Kind;

    /// Its name in the lock.
    fn name(&self) -> Cow<'_, str>;

    /// The digest that the lock gives it.
    fn digest(&self) -> &Digest;

    /// Writes it as the lock has it. Equal items give equal text.
    ///
    /// # Errors
    /// Those of `out`.
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result;

    /// What the lock says of it that no lock of landfall says. A lock may come from the other side of a gap.
    fn fault(&self) -> Option<String>;

    /// Everything that must be there for it to be whole.
    fn entry(&self) -> Entry;

    /// Its repositories at a registry. The first one is written into references.
    fn destinations(&self, mapping: &Mapping) -> Vec<Destination>;

    /// Its tag in each of them.
    fn tag(&self) -> String;

    /// The repository under which our own registry offers it beside its destinations.
    fn own_repository(&self) -> String;

    /// The image reference that means it, where one does.
    fn reference(&self) -> Option<&ImageRef> {
        None
    }

    /// Every digest by which an image reference can mean it.
    fn digests(&self) -> BTreeSet<Digest> {
        BTreeSet::from([self.digest().clone()])
    }

    /// The files that are found by URL and can be exported, the item's own first.
    fn files(&self) -> Vec<FileForm<'_>> {
        Vec::new()
    }

    /// The platforms that it is for; `None` where that has no meaning.
    fn platforms(&self) -> Option<BTreeSet<String>> {
        None
    }

    /// Whether `digest` is a blob of it.
    fn has_blob(&self, digest: &Digest) -> bool {
        self.digest() == digest
    }

    /// Where the lock and the content in `blobs` contradict each other; a sentence each.
    fn contradictions(&self, _blobs: &dyn BlobRead) -> Vec<String> {
        Vec::new()
    }

    /// Where it comes from, without a version: the repository, or else its name.
    fn source(&self) -> String {
        self.reference().map_or_else(|| self.name().into_owned(), ImageRef::name)
    }
}

/// A file that stands at URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileForm<'a> {
    /// The word for it: a file, or a sidecar of one.
    pub kind: Kind,
    /// Its URL.
    pub name: &'a str,
    /// All URLs that mean it, its own first.
    pub urls: Vec<&'a str>,
    /// The digest of its content.
    pub digest: &'a Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Permission bits for exports, octal text.
    pub mode: Option<&'a str>,
}

/// One kind of item, as the lock and the manifest hold it.
pub trait ItemKind: LockedItem + Clone + Sized {
    /// The word for the kind.
    const KIND: Kind;

    /// Whether its items have [`files`](LockedItem::files).
    const HAS_FILES: bool = false;

    /// A name of this kind; sections are sorted by it.
    type Name: Ord + fmt::Display + Sync;

    /// What a manifest asks for.
    type Wish: Sync;

    /// Whether `text`, as people write it, names an item of this kind and of none before it in the table.
    fn is_named(text: &str) -> bool;

    /// The name that sorts it.
    fn key(&self) -> &Self::Name;

    /// The name under which a wish is locked.
    fn wished(wish: &Self::Wish) -> &Self::Name;

    /// Finds out what `wish` is exactly; `old` is what the last lock has of it.
    fn resolve(
        resolver: &Resolver,
        wish: &Self::Wish,
        old: Option<&Self>,
        pins: Pins,
    ) -> impl Future<Output = Found<Self>>;
}

/// Whether pins are asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pins {
    /// An entry whose manifest text is unchanged keeps its pin without a request.
    Keep,
    /// Every tag is asked for again.
    Refresh,
}

/// What resolving a wish gives.
pub enum Found<T> {
    /// Unchanged; nobody was asked.
    Kept(T),
    /// Resolved anew.
    New(T),
    /// Upstream lacks it now; the old pin stays.
    Gone(T),
    /// It cannot be resolved; the old pin stays where there is one.
    Lost(Option<T>, Cause),
}
