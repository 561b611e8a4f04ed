//! A kind of item, in its three forms: an entry that people write in a manifest, a request for one
//! item, and the locked item; and the result of resolving a request.

use crate::chart::ChartRequest;
use crate::git::GitRequest;
use crate::image::ImageRequest;
use crate::locked_item::LockedItem;
use crate::resolver::{ResolveError, Resolver};
use crate::text::{Exclusion, FieldConflict};
use crate::version_selector::VersionSelector;
use jiff::Timestamp;
use landfall_model::document::{
    Diagnostic, ManifestVars, SourceLocation, SourceSpan, SourceText, TemplateField, UpdateRule,
    YamlNode, read_input,
};
use landfall_model::report::EntryKind;
use landfall_model::sign::OpenPgpKeys;
use landfall_model::{
    Digest, DigestError, ImageRef, MinimumAge, PlatformRequest, has_userinfo, is_web_url,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use url::Url;

/// A kind of item. It is implemented by the type of its locked items, and names the types of its
/// manifest entries and its requests. `kinds.rs` implements it for all kinds.
pub trait ItemKind: Clone + Send + Sync + 'static {
    /// The kind, as reports name it.
    const KIND: EntryKind;

    /// The key of the kind's section in a manifest and in the lock.
    const SECTION: &'static str;

    /// The name of an item. The lock sorts the section by it.
    type Name: Ord + Clone + fmt::Display + Sync;

    /// A request for one item of this kind.
    type Request: ItemRequest<Item = Self>;

    /// An entry of a manifest.
    type Entry: ManifestEntry<Request = Self::Request>;

    /// The name by which the lock sorts the item.
    fn key(&self) -> &Self::Name;

    /// The item, for code that handles all kinds.
    fn as_item(&self) -> LockedItem<'_>;
}

/// A request for something that a locked item depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencyRequest {
    /// An image that was found in a chart.
    Image(ImageRequest),
    /// A chart that another chart depends on.
    Chart(ChartRequest),
    /// A repository with a commit that a submodule of another repository pins.
    Git(GitRequest),
}

/// An entry of a manifest as people write it.
pub trait ManifestEntry: Clone + DeserializeOwned + fmt::Debug + JsonSchema {
    /// A request that the entry expands to.
    type Request: ItemRequest;

    /// Checks the entry as it is written, before variables are filled in.
    ///
    /// # Errors
    /// The first error that does not depend on variables.
    fn check(&self, _reader: EntryReader<'_>) -> ManifestResult<()> {
        Ok(())
    }

    /// The rule by which the entry selects versions, if it has one. Variables are filled in.
    ///
    /// # Errors
    /// If the rule is invalid.
    fn selector(&self, _reader: EntryReader<'_>) -> ManifestResult<Option<VersionSelector>> {
        Ok(None)
    }

    /// Adds all texts of the entry that may use variables to `fields`.
    fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>);

    /// The requests of this entry, in which variables are filled in, each with its position.
    /// `written` is the checked entry before that.
    ///
    /// # Errors
    /// The first invalid value of the entry.
    fn requests(
        &self,
        written: &Self,
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<(Self::Request, SourceSpan)>>;

    /// The versions in the entry that have an update policy.
    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        Vec::new()
    }
}

/// The requests of a manifest entry, each with its position, and its selector.
pub(crate) struct ExpandedEntry<R> {
    pub(crate) requests: Vec<(R, SourceSpan)>,
    pub(crate) selector: Option<VersionSelector>,
}

/// Expands `entry`: fills in each combination of its variables, and returns the requests of the
/// results, or the first invalid variable or value of the entry.
pub(crate) fn expand_entry<E: ManifestEntry>(
    entry: &E,
    reader: EntryReader<'_>,
) -> ManifestResult<ExpandedEntry<E::Request>> {
    entry.check(reader)?;
    let filled = reader.context.vars.expand(entry, |entry| {
        let mut fields = EntryFields {
            text: reader.context.text,
            node: reader.node,
            fields: Vec::new(),
        };
        entry.add_fields(&mut fields);
        fields.fields
    })?;
    let mut requests = Vec::new();
    let mut selector = None;
    for one in &filled {
        requests.extend(one.requests(entry, reader)?);
        let found = one.selector(reader)?;
        if found.is_some() && filled.len() > 1 {
            return Err(reader.here().fault(
                "an entry with `select` cannot use a variable with a list of values",
                Some("write an entry for each value"),
            ));
        }
        selector = found;
    }
    Ok(ExpandedEntry { requests, selector })
}

/// The texts of a manifest entry that may use variables, with their positions.
#[derive(Debug)]
pub struct EntryFields<'a, 'e> {
    text: &'a Rc<SourceText>,
    /// The mapping whose keys are added.
    pub(super) node: &'a YamlNode<'a>,
    fields: Vec<TemplateField<'e>>,
}

impl<'a, 'e> EntryFields<'a, 'e> {
    /// Adds `texts`, which are written in the value of `key`.
    pub(super) fn add(&mut self, key: &str, texts: impl IntoIterator<Item = &'e mut String>) {
        self.add_at(self.node.get(key), texts);
    }

    /// Adds `texts`, which are the items of the list `key`.
    pub(super) fn add_list(&mut self, key: &str, texts: impl IntoIterator<Item = &'e mut String>) {
        for (index, text) in texts.into_iter().enumerate() {
            self.add_at(self.node.get(key).item(index), [text]);
        }
    }

    /// Adds the policy of the rule at `key`.
    pub(super) fn add_policy(&mut self, key: &str, rule: &'e mut Option<UpdateRule>) {
        let policy = rule.as_mut().map(|rule| &mut rule.policy);
        self.add_at(self.node.get(key).get("policy"), policy);
    }

    /// Adds `texts`, which are written at `node`.
    pub(super) fn add_at(
        &mut self,
        node: &YamlNode<'_>,
        texts: impl IntoIterator<Item = &'e mut String>,
    ) {
        let at = SourceSpan::new(self.text, node.span());
        let texts = texts.into_iter();
        self.fields
            .extend(texts.map(|text| TemplateField::new(text, at.clone())));
    }

    /// Lets the fields that `add` adds use `${url}` as well.
    pub(super) fn with_own_url(&mut self, add: impl FnOnce(&mut EntryFields<'a, 'e>)) {
        let start = self.fields.len();
        add(self);
        for field in &mut self.fields[start..] {
            field.takes_url = true;
        }
    }

    /// Calls `add` with `node` as the mapping whose keys are added.
    pub(super) fn below(
        &mut self,
        node: &'a YamlNode<'a>,
        add: impl FnOnce(&mut EntryFields<'a, 'e>),
    ) {
        let outer = std::mem::replace(&mut self.node, node);
        add(self);
        self.node = outer;
    }
}

/// A request for one item: a manifest entry with its variables filled in, or a dependency of
/// another item.
pub trait ItemRequest: Clone + fmt::Debug + PartialEq + Sync {
    /// The name of the requested item.
    type Name: Ord + Clone + fmt::Display + Sync;

    /// The locked item that it resolves to.
    type Item: ItemKind<Request = Self, Name = Self::Name>;

    /// The number of item requests that each job of `--jobs` resolves at once. More than one saves
    /// time if resolving an item takes several small HTTP requests one after the other. Each host
    /// has a limit of its own.
    const CONCURRENCY: usize = 1;

    /// The name under which the item is locked.
    fn name(&self) -> &Self::Name;

    /// Whether `exclusion` removes this request.
    fn is_excluded_by(&self, exclusion: &Exclusion) -> bool {
        exclusion.matches_url(&self.name().to_string())
    }

    /// The name of the item in the form that `exclusion` has, to suggest a correction. `None` if
    /// the item cannot be excluded in that form.
    fn name_like(&self, exclusion: &Exclusion) -> Option<String> {
        matches!(exclusion, Exclusion::Url(_)).then(|| self.name().to_string())
    }

    /// Whether the content is next to the manifest, so that nothing is requested for it.
    fn is_local(&self) -> bool {
        false
    }

    /// The URLs that no other item may have.
    fn urls(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The URLs besides the name that are requested to lock or pull the item.
    fn further_urls(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Adds the fields that `other`, a request with the same name, specifies and `self` does not.
    ///
    /// # Errors
    /// If the two requests contradict each other.
    fn merge(&mut self, other: &Self) -> Result<(), FieldConflict>;

    /// Adds what a list of another tool requests under the same name. The entry of the manifest,
    /// `self`, overrides it.
    ///
    /// # Errors
    /// If the two name different content.
    fn merge_listed(&mut self, listed: &Self) -> Result<(), FieldConflict> {
        self.merge(listed)
    }

    /// Whether locking this item may find further items that `exclusion` removes.
    fn may_find(&self, _exclusion: &Exclusion) -> bool {
        false
    }

    // How `lock` resolves the request.

    /// Resolves the request. `old` is the item of this name in the last lock.
    fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&Self::Item>,
        pins: PinPolicy,
    ) -> impl Future<Output = ResolveOutcome<Self::Item>>;

    /// Requests for the items that `item`, the result of this request, depends on. They must be
    /// locked, too.
    fn dependencies(&self, _item: &Self::Item) -> Vec<DependencyRequest> {
        Vec::new()
    }

    /// Whether the lock may keep `old`, the item of this name in the last lock, although this
    /// request could not be resolved: its recorded signatures must meet the rules and keys of now.
    fn accepts(&self, old: &Self::Item, resolver: &Resolver) -> bool {
        meets_rules(old, resolver)
    }

    /// Checks that upstream still has `old`, the item of this name in the last lock. It is not
    /// local.
    fn check_upstream(
        _resolver: &Resolver,
        _old: &Self::Item,
    ) -> impl Future<Output = Result<(), ResolveError>> {
        async { Ok(()) }
    }

    // How `update` finds newer versions.

    /// The update policy with its further rules, if the request has a policy of its own. The
    /// manifest's minimum age is filled in.
    fn update_rule(&self) -> Option<&UpdateRule> {
        None
    }

    /// The image reference, if it has a tag. The tags of its repository are the versions of the
    /// item.
    fn tagged_reference(&self) -> Option<&ImageRef> {
        None
    }

    /// The digest that the manifest requires, and where it is written.
    fn demanded_digest(&self) -> Option<(&Digest, &SourceLocation)> {
        None
    }

    /// Looks up an item that is not local by its name, with as few requests as possible. Returns
    /// its digest and the size of a file in bytes, if the answer contains them.
    ///
    /// # Errors
    /// If upstream does not have the item, or cannot be asked.
    fn look_up(
        &self,
        _resolver: &Resolver,
    ) -> impl Future<Output = Result<(Option<Digest>, Option<u64>), ResolveError>> {
        async { Ok((None, None)) }
    }

    /// Checks that what upstream has under this name can be locked as requested, with as few
    /// requests as possible. `digest` is the digest that [`Self::look_up`] returned.
    ///
    /// # Errors
    /// Why it cannot be locked, for example because it lacks a requested platform.
    fn check_content(
        &self,
        _resolver: &Resolver,
        _digest: Option<&Digest>,
    ) -> impl Future<Output = Result<(), ResolveError>> {
        async { Ok(()) }
    }

    /// The earliest time at which a transparency log recorded a signature of `digest`. Only
    /// signatures that meet the resolver's rules count. `None` if no log has one.
    fn logged_since(
        &self,
        _resolver: &Resolver,
        _digest: &Digest,
    ) -> impl Future<Output = Result<Option<Timestamp>, ResolveError>> {
        async { Ok(None) }
    }
}

/// Whether the recorded signatures of `old` meet the rules of `resolver`.
pub(crate) fn meets_rules(old: &impl ItemKind, resolver: &Resolver) -> bool {
    let old = old.as_item();
    old.signature_subject().is_none_or(|subject| {
        resolver
            .signatures
            .accepts(subject, old.recorded_signatures())
    })
}

/// A version that `update` may change because its manifest entry has an update policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovableVersion<'a> {
    /// The update policy and its further rules, as they are written.
    pub rule: &'a UpdateRule,
    /// The item without its version, as messages name it.
    pub name: String,
    /// The position of this key's value in the entry identifies the item's request.
    pub item_key: &'static str,
    /// The path from the entry to the text with the version.
    pub path: Vec<EntryPathStep>,
    /// The text with the version.
    pub text: &'a str,
    /// The bytes of `text` that are the version.
    pub version: Range<usize>,
}

/// A step of the path from a manifest entry to one of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryPathStep {
    /// To the value of a key.
    Key(&'static str),
    /// To the nth value of a list, counted from 0.
    Index(usize),
}

/// The state of an item upstream, looked up by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamStatus {
    /// Upstream answered that it does not have the item.
    Gone,
    /// Upstream has an item with this name.
    Present {
        /// Its digest, if the answer contains one.
        digest: Option<Digest>,
        /// The size of a file in bytes, if the answer contains it.
        size: Option<u64>,
    },
}

/// When `lock` queries upstream for an item that is already locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinPolicy {
    /// An entry whose manifest text is unchanged keeps its pin without a request.
    Keep,
    /// Like `Keep`, but signatures and other referrers are looked up again.
    Referrers,
    /// Upstream is queried again for every item.
    Refresh,
    /// Like `Refresh`, but an item that cannot be resolved is not kept: the old lock is only a
    /// cache of what an earlier run found.
    Recall,
}

impl PinPolicy {
    /// Whether an item stays as the lock has it while its entry is unchanged.
    pub(crate) fn keeps(self) -> bool {
        matches!(self, PinPolicy::Keep | PinPolicy::Referrers)
    }
}

/// A value of a manifest, or an error with its position.
pub type ManifestResult<T> = Result<T, Box<Diagnostic>>;

/// The context in which the entries of one manifest are read: its text, its variables and its
/// defaults.
#[derive(Debug)]
pub struct EntryContext<'a> {
    /// The text of the manifest, for positions in messages.
    pub text: &'a Rc<SourceText>,
    /// The variables of the manifest.
    pub vars: ManifestVars,
    /// The default platforms of entries, sorted; empty means all.
    pub platforms: Vec<PlatformRequest>,
    /// Whether the referrers of images are carried by default.
    pub referrers: bool,
    /// The default minimum age of new versions.
    pub min_age: Option<MinimumAge>,
}

impl EntryContext<'_> {
    /// The reader of the whole manifest.
    pub(super) fn root(&self) -> EntryReader<'_> {
        EntryReader {
            node: &self.text.root,
            context: self,
        }
    }
}

/// Reads an entry of a manifest, or a part of it.
#[derive(Debug, Clone, Copy)]
pub struct EntryReader<'a> {
    /// Where the entry is written.
    pub node: &'a YamlNode<'a>,
    /// The context of all entries of the manifest.
    pub context: &'a EntryContext<'a>,
}

impl<'a> EntryReader<'a> {
    /// The reader of the value of `key`.
    pub(super) fn below(self, key: &str) -> EntryReader<'a> {
        let node = self.node.get(key);
        EntryReader { node, ..self }
    }

    /// The reader of the item with this index.
    pub(super) fn item(self, index: usize) -> EntryReader<'a> {
        let node = self.node.item(index);
        EntryReader { node, ..self }
    }

    /// The position of the entry.
    pub(super) fn here(self) -> SourceSpan {
        SourceSpan::new(self.context.text, self.node.span())
    }

    /// The position of the value of `key`.
    pub(super) fn at(self, key: &str) -> SourceSpan {
        self.below(key).here()
    }

    /// The position of the item with this index in the list `key`.
    pub(super) fn item_at(self, key: &str, index: usize) -> SourceSpan {
        self.below(key).item(index).here()
    }

    /// Reads a small file whose path is relative to the folder of the manifest.
    pub(super) fn read_file(self, path: &str, at: &SourceSpan) -> ManifestResult<Vec<u8>> {
        if is_web_url(path) {
            return Err(at.fault(
                "this is a URL, and a file is needed",
                Some("download the file, verify it, and write its path"),
            ));
        }
        let path = Path::new(&self.context.text.file)
            .parent()
            .unwrap_or(Path::new(""))
            .join(path);
        read_input(&path).map_err(|error| {
            at.fault(
                format!("cannot read {}: {error}", path.display()),
                Some("the path is relative to the folder of this manifest"),
            )
        })
    }

    /// Reads a file with OpenPGP public keys, whose path is relative to the folder of the manifest.
    pub(super) fn read_keys(self, path: &str, at: &SourceSpan) -> ManifestResult<OpenPgpKeys> {
        OpenPgpKeys::parse(&self.read_file(path, at)?)
            .map_err(|error| at.fault(format!("{path}: {error}"), None))
    }
}

/// Parses a digest that a manifest contains.
pub(super) fn digest_of(text: &str, span: &SourceSpan) -> ManifestResult<Digest> {
    text.parse()
        .map_err(|error: DigestError| span.fault(error.to_string(), None))
}

/// The message and the help for a URL with a user name or a password.
pub(super) const USERINFO: (&str, &str) = (
    "a URL must not contain a user name or password: manifests and locks are not secret",
    "remove it from the URL, and configure credentials in the site file (`upstreams`)",
);

/// Rejects a URL with a user name or a password.
pub(super) fn check_no_userinfo(url: &Url, span: &SourceSpan) -> ManifestResult<()> {
    if !has_userinfo(url) {
        return Ok(());
    }
    let (message, help) = USERINFO;
    Err(span.fault(message, Some(help)))
}

/// The result of resolving a request.
pub enum ResolveOutcome<T> {
    /// The pin is unchanged, whether upstream was queried or not.
    Kept(T),
    /// The item was resolved, for the first time or again.
    New(T),
    /// Upstream no longer has the item; the old pin stays.
    Gone(T),
    /// The item could not be resolved; the old pin, if there is one, stays.
    Failed(Option<T>, ResolveError),
}

impl<T> ResolveOutcome<T> {
    /// Returns the item whose signatures must be verified, and whether the item is kept. If nothing
    /// was resolved, returns the outcome as the error. That outcome contains an old item only if
    /// `is_accepted` is true for it, that is, if its recorded signatures meet the policy.
    pub(crate) fn item_to_verify(
        self,
        is_accepted: impl Fn(&T) -> bool,
    ) -> Result<(T, bool), ResolveOutcome<T>> {
        match self {
            ResolveOutcome::Kept(item) => Ok((item, true)),
            ResolveOutcome::New(item) => Ok((item, false)),
            ResolveOutcome::Gone(old) if !is_accepted(&old) => {
                Err(ResolveOutcome::Failed(None, ResolveError::gone()))
            }
            ResolveOutcome::Gone(old) => Err(ResolveOutcome::Gone(old)),
            ResolveOutcome::Failed(old, cause) => {
                Err(ResolveOutcome::Failed(old.filter(is_accepted), cause))
            }
        }
    }
}

impl<T: Clone + PartialEq> ResolveOutcome<T> {
    /// The outcome for an item that was resolved again. `old` is the item in the old lock, which
    /// stays after an error. An item next to the manifest is a part of it: changed content is a
    /// changed entry.
    pub(crate) fn of(found: Result<T, ResolveError>, old: Option<&T>) -> ResolveOutcome<T> {
        match found {
            Ok(item) if old == Some(&item) => ResolveOutcome::Kept(item),
            Ok(item) => ResolveOutcome::New(item),
            Err(cause) => ResolveOutcome::Failed(old.cloned(), cause),
        }
    }

    /// The outcome after an error. `old` is the item in the old lock, if it still meets the
    /// request.
    pub(crate) fn lost(old: Option<&T>, pins: PinPolicy, cause: ResolveError) -> ResolveOutcome<T> {
        match old {
            Some(old) if cause.is_gone && pins != PinPolicy::Recall => {
                ResolveOutcome::Gone(old.clone())
            }
            old => ResolveOutcome::Failed(old.cloned(), cause),
        }
    }
}

impl<T: ItemKind> ResolveOutcome<T> {
    /// The outcome for an item with this digest whose signatures could not be verified. `old` is
    /// the item in the old lock, and `is_accepted` whether its recorded signatures meet the policy.
    pub(crate) fn unverified(
        old: Option<&T>,
        is_accepted: impl Fn(&T) -> bool,
        digest: &Digest,
        cause: ResolveError,
    ) -> ResolveOutcome<T> {
        // An accepted old item with another digest is kept. With the same digest, it is kept only
        // after a temporary failure: a permanent one means that its signature is gone.
        let kept = old.filter(|old| {
            is_accepted(old) && (old.as_item().digest() != digest || cause.is_temporary)
        });
        ResolveOutcome::Failed(kept.cloned(), cause)
    }
}
