//! What a kind of item is: what everybody asks of one item, and what a lock and a manifest ask of
//! its kind.

use super::ask::Ask;
use super::chart::{ChartArchive, OpenReference};
use super::entry_reader::{Checked, EntryReader};
use super::exclude::Exclude;
use super::join::Contradiction;
use super::packages::{Carried, PackageForm, WantedPackages};
use super::resolver::{Cause, Resolver};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::{ChartVersions, Location, Node, SourceSpan};
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{Destination, DestinationMap, Digest, ImageRef};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// One locked item, of whatever kind. Everybody outside of the item's own file asks this trait.
pub trait LockedItem: fmt::Debug + Send + Sync {
    /// The word for its kind.
    fn kind(&self) -> EntryKind;

    /// Its name in the lock.
    fn name(&self) -> Cow<'_, str>;

    /// The digest that the lock gives it.
    fn digest(&self) -> &Digest;

    /// Writes it as the lock has it. Equal items give equal text.
    ///
    /// # Errors
    /// Those of `out`.
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result;

    /// What the lock says of it that no lock of landfall says. A lock may come from the other side
    /// of a gap.
    fn fault(&self) -> Option<String>;

    /// Everything that must be there for it to be whole.
    fn entry(&self) -> LockEntry;

    /// Its repositories at a registry. The first one is written into references.
    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination>;

    /// Its tag in each of them.
    fn tag(&self) -> String;

    /// The tags that signatures and other referrers of it have at a destination, with what stands
    /// at each.
    fn referrer_tags(&self) -> Vec<(&str, &Digest)> {
        Vec::new()
    }

    /// The repository under which our own registry offers it beside its destinations.
    fn own_repository(&self) -> String;

    /// The image reference that means it, where one does.
    fn reference(&self) -> Option<&ImageRef> {
        None
    }

    /// Every digest by which an image reference can mean it.
    fn digests(&self) -> Vec<&Digest> {
        vec![self.digest()]
    }

    /// The files that are found by URL and can be exported, the item's own first.
    fn files(&self) -> Vec<FileForm<'_>> {
        Vec::new()
    }

    /// URLs that are asked to find it, and are none of its parts: what `lock` asks, and `pull` does
    /// not.
    fn indexes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether a server offers it out of a registry that holds it. Images are pulled from the
    /// registry itself.
    fn is_offered(&self) -> bool {
        true
    }

    /// It as an archive that an HTTP repository of charts offers, where it is a chart.
    fn chart(&self) -> Option<ChartArchive> {
        None
    }

    /// The packages in it, where it is a set of them.
    fn packages(&self) -> Vec<PackageForm<'_>> {
        Vec::new()
    }

    /// What it says of the package `word`, as the package manager `manager` takes it; `None` where
    /// it has none for that one.
    fn carried(&self, _manager: &str, _word: &str) -> Option<Carried> {
        None
    }

    /// What it names that may be an image, and is not decided.
    fn open(&self) -> &[OpenReference] {
        &[]
    }

    /// The platforms that it is for; `None` where that has no meaning.
    fn platforms(&self) -> Option<BTreeSet<String>> {
        None
    }

    /// Whether `digest` is a blob of it.
    fn has_blob(&self, digest: &Digest) -> bool {
        self.digest() == digest
    }

    /// Where the lock and the content in `blobs` contradict each other; a sentence each. Signatures
    /// in the content are judged at `time`.
    fn contradictions(&self, _blobs: &dyn BlobRead, _time: SignatureTime) -> Vec<String> {
        Vec::new()
    }

    /// Where it comes from, without a version: the repository, or else its name.
    fn source(&self) -> String {
        self.reference()
            .map_or_else(|| self.name().into_owned(), ImageRef::name)
    }
}

/// A file that stands at URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileForm<'a> {
    /// The word for it: a file, or a sidecar of one.
    pub kind: EntryKind,
    /// Its URL.
    pub name: &'a str,
    /// All URLs that mean it, its own first.
    pub urls: Vec<Cow<'a, str>>,
    /// The digest of its content.
    pub digest: &'a Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Permission bits for exports, octal text.
    pub mode: Option<&'a str>,
    /// Members of the archive that an export writes beside it.
    pub members: &'a [String],
}

impl<'a> FileForm<'a> {
    /// A file at the URL `name` alone, with no mode and no members.
    pub fn plain(kind: EntryKind, name: &'a str, digest: &'a Digest, size: u64) -> FileForm<'a> {
        FileForm {
            kind,
            name,
            urls: vec![name.into()],
            digest,
            size,
            mode: None,
            members: &[],
        }
    }
}

/// One kind of item, as the lock and the manifest hold it.
pub trait ItemKind: LockedItem + Clone + Sized {
    /// The word for the kind.
    const KIND: EntryKind;

    /// Whether its items have [`files`](LockedItem::files).
    const HAS_FILES: bool = false;

    /// Whether what an item holds is chosen anew where its wish changes, so that only locking it
    /// shows whether it can be had.
    const IS_CHOSEN: bool = false;

    /// How many are resolved at once for each of `--jobs`: more than one where that is several
    /// small questions, one after another. What a host is asked at once has a limit of its own.
    const AT_ONCE: usize = 1;

    /// A name of this kind; sections are sorted by it.
    type Name: Ord + Clone + fmt::Display + Sync;

    /// What a manifest asks for.
    type Wish: Clone + fmt::Debug + PartialEq + Sync;

    /// An entry of a manifest as people write it.
    type Written: Clone + DeserializeOwned + fmt::Debug + JsonSchema;

    /// Whether `text`, as people write it, names an item of this kind.
    fn is_named(text: &str) -> bool;

    /// The name that sorts it.
    fn key(&self) -> &Self::Name;

    /// The name under which a wish is locked.
    fn wished(wish: &Self::Wish) -> &Self::Name;

    /// The wishes of `entry`, which stands at `node`, each with its place: one for each combination
    /// of variables.
    ///
    /// # Errors
    /// What is wrong with the entry.
    fn read(
        entry: &Self::Written,
        node: &Node,
        reader: &EntryReader<'_>,
    ) -> Checked<Vec<(Self::Wish, SourceSpan)>>;

    /// `text`, which [names](ItemKind::is_named) an item of this kind, as the lock names it.
    ///
    /// # Errors
    /// When it is no such name.
    fn name_of(text: &str, span: &SourceSpan) -> Checked<String>;

    /// `text`, which [names](ItemKind::is_named) items of this kind, as what to leave out.
    ///
    /// # Errors
    /// When it is no such name.
    fn exclusion(text: &str, span: &SourceSpan) -> Checked<Exclude>;

    /// Whether `exclude` leaves `wish` out.
    fn is_excluded(wish: &Self::Wish, exclude: &Exclude) -> bool;

    /// The name of `wish` in the form that `exclude` has, for a message; `None` where it has none.
    fn alike(wish: &Self::Wish, exclude: &Exclude) -> Option<String>;

    /// The URLs that `wish` alone may stand for.
    fn urls(_wish: &Self::Wish) -> Vec<&str> {
        Vec::new()
    }

    /// Takes from `second`, a wish of the same name, what `first` lacks.
    ///
    /// # Errors
    /// When they contradict each other.
    fn join(first: &mut Self::Wish, second: &Self::Wish) -> Result<(), Contradiction>;

    /// Whether `wish` may ask for images that nobody knows before it is locked.
    fn may_ask(_wish: &Self::Wish) -> bool {
        false
    }

    /// What `item`, locked for `wish`, asks for besides itself.
    fn asks(_wish: &Self::Wish, _item: &Self) -> Vec<Ask> {
        Vec::new()
    }

    /// Finds out what `wish` is exactly; `old` is what the last lock has of it.
    fn resolve(
        resolver: &Resolver,
        wish: &Self::Wish,
        old: Option<&Self>,
        pins: Pins,
    ) -> impl Future<Output = Found<Self>>;

    /// The image reference in `entry`, as it is written.
    fn reference(_entry: &Self::Written) -> Option<&str> {
        None
    }

    /// The versions in `entry` that a policy of its own may move.
    fn moving(_entry: &Self::Written) -> Vec<Moving<'_>> {
        Vec::new()
    }

    /// The package in `entry` whose version is made of `variable`, which is written `${NAME}`.
    fn pinned_by(_entry: &Self::Written, _variable: &str) -> Option<PinnedBy> {
        None
    }

    /// The update policy of `wish`, where it has one of its own.
    fn policy(_wish: &Self::Wish) -> Option<&str> {
        None
    }

    /// The repository whose tags are the versions of `wish`, with its tag.
    fn tagged(_wish: &Self::Wish) -> Option<&ImageRef> {
        None
    }

    /// The index of a chart repository that has the versions of `wish`.
    fn indexed(_wish: &Self::Wish) -> Option<ChartVersions> {
        None
    }

    /// The kind of machine whose sources have the versions of the packages of `wish`.
    fn machine(_wish: &Self::Wish) -> Option<&WantedPackages> {
        None
    }

    /// Whether `wish`, whose text changed, can be locked, where the kind [is
    /// chosen](ItemKind::IS_CHOSEN); `old` is what the last lock has of its name. An error says why
    /// not.
    fn can_lock(
        _resolver: &Resolver,
        _wish: &Self::Wish,
        _old: Option<&Self>,
    ) -> impl Future<Output = Result<(), Cause>> {
        async { Ok(()) }
    }

    /// The digest that the manifest demands of `wish`, and where `wish` is written.
    fn demanded(_wish: &Self::Wish) -> Option<(&Digest, &Location)> {
        None
    }

    /// Asks upstream, by as few requests as can be, what stands at the name of `wish`.
    fn stand(
        _resolver: &Resolver,
        _wish: &Self::Wish,
    ) -> impl Future<Output = Result<Stand, Cause>> {
        async {
            Ok(Stand::There {
                digest: None,
                size: None,
            })
        }
    }

    /// Asks whether upstream still has what the last lock has. An error says why not.
    fn is_upstream(_resolver: &Resolver, _old: &Self) -> impl Future<Output = Result<(), Cause>> {
        async { Ok(()) }
    }
}

/// A version in an entry of a manifest, with a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moving<'a> {
    /// The policy.
    pub policy: &'a str,
    /// What people call the item, without its version.
    pub name: String,
    /// The key where the item is said to be written.
    pub item_at: &'static str,
    /// The way from the entry to the text with the version.
    pub path: Vec<Step>,
    /// That text.
    pub text: &'a str,
    /// The version, as bytes of `text`.
    pub version: Range<usize>,
}

/// A package whose version is made of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedBy {
    /// The key where the item is said to be written.
    pub item_at: &'static str,
    /// The package.
    pub package: String,
    /// What stands in the version before the variable.
    pub before: String,
    /// What stands behind it.
    pub after: String,
}

/// A step into a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// To the value of a key.
    Key(&'static str),
    /// To the nth value of a list, from 0.
    Item(usize),
}

/// What stands upstream at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    /// Nothing.
    Gone,
    /// Something.
    There {
        /// Its digest, where upstream says so.
        digest: Option<Digest>,
        /// The size of a file in bytes, where upstream says so.
        size: Option<u64>,
    },
}

/// Whether pins are asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pins {
    /// An entry whose manifest text is unchanged keeps its pin without a request.
    Keep,
    /// As `Keep`, but signatures and other referrers are looked up again.
    Referrers,
    /// Every tag is asked for again.
    Refresh,
    /// As `Refresh`, but the old lock is only what an earlier run found: nothing of it is kept that
    /// upstream lacks.
    Recall,
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
