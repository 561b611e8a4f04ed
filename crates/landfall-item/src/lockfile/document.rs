//! The content of a lock: a section of items for each kind, and the items that are missing. See
//! docs/reference/lock.md.

use crate::image::LockedReferrer;
use crate::{
    ItemKind, LockedChart, LockedFile, LockedGitRepository, LockedImage, LockedItem,
    LockedPackageSet, LockedProvider,
};
use landfall_content::LockEntry;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{ChangedName, Descriptor, Digest, today};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The content of `landfall.lock`. The lists are sorted when the lock is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Version of the format; 1.
    pub version: u32,
    /// The `metadata.name` of the manifests; `None` if their names differ, or none has a name.
    /// Bundles that are packed with `--serial` form a series of this name.
    pub name: Option<String>,
    /// The locked container images.
    #[serde(default)]
    pub images: Vec<LockedImage>,
    /// The locked plain files.
    #[serde(default)]
    pub files: Vec<LockedFile>,
    /// The locked Helm charts.
    #[serde(default)]
    pub charts: Vec<LockedChart>,
    /// The locked sets of OS packages.
    #[serde(default)]
    pub packages: Vec<LockedPackageSet>,
    /// The locked git repositories.
    #[serde(default)]
    pub git: Vec<LockedGitRepository>,
    /// The locked providers of OpenTofu and Terraform.
    #[serde(default)]
    pub providers: Vec<LockedProvider>,
    /// Hosts that cannot be mirrored and must stay reachable.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    /// Losses that the manifest accepts.
    #[serde(default)]
    pub missing: Vec<AcceptedLoss>,
    /// Items that could not be resolved. If there are any, a bundle of this lock is partial.
    #[serde(default)]
    pub unresolved: Vec<UnresolvedItem>,
}

/// Evaluates `$body` for each section of items of `$lock`, a shared or mutable reference, in the
/// order of the lock.
macro_rules! each_section {
    (@ $section:ident, $body:expr, $($list:ident)*) => {
        $({
            let $section = $list;
            $body;
        })*
    };
    ($lock:expr, $section:ident => $body:expr) => {{
        // no `..` here and below, so that the compiler finds the code that lacks a section
        let Lock {
            version: _,
            name: _,
            images,
            files,
            charts,
            packages,
            git,
            providers,
            endpoints: _,
            missing: _,
            unresolved: _,
        } = $lock;
        each_section!(@ $section, $body, images files charts packages git providers);
    }};
}

impl Lock {
    /// All items, section by section.
    pub fn items(&self) -> impl Iterator<Item = LockedItem<'_>> {
        let mut sections: Vec<Box<dyn Iterator<Item = LockedItem<'_>> + '_>> = Vec::new();
        each_section!(self, section => {
            sections.push(Box::new(section.iter().map(ItemKind::as_item)));
        });
        sections.into_iter().flatten()
    }

    /// The names that changed, among the names of items and the hosts of endpoints. Sorted.
    pub fn changed_names(&self) -> Vec<&'static ChangedName> {
        let items = self.items().map(|item| item.name().into_owned());
        let unresolved = self.unresolved.iter().map(|item| item.name.clone());
        let hosts = self.endpoints.iter().map(|endpoint| endpoint.host.clone());
        ChangedName::among(items.chain(unresolved).chain(hosts))
    }

    /// The item at position `at` of [`items`](Lock::items).
    #[allow(unused_assignments, reason = "the last section counts, too")]
    pub fn item(&self, mut at: usize) -> Option<LockedItem<'_>> {
        each_section!(self, section => {
            if let Some(item) = section.get(at) {
                return Some(item.as_item());
            }
            at -= section.len();
        });
        None
    }

    /// Keeps only the items for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(LockedItem<'_>) -> bool) {
        each_section!(self, section => section.retain(|item| keep(item.as_item())));
    }

    /// Adds all items, endpoints, losses and unresolved items of `other`, and its name if this lock
    /// has none.
    pub fn append(&mut self, other: Lock) {
        fn add<K: LockedKind>(lock: &mut Lock, section: Vec<K>) {
            K::section_mut(lock).extend(section);
        }
        each_section!(other, section => add(self, section));
        self.name = self.name.take().or(other.name);
        self.endpoints.extend(other.endpoints);
        self.missing.extend(other.missing);
        self.unresolved.extend(other.unresolved);
    }

    /// Frees the memory that appending reserved. A lock may have a million blobs.
    pub(super) fn shrink(&mut self) {
        each_section!(self, section => section.shrink_to_fit());
    }

    /// A name that two items of one kind, or two endpoints, share.
    pub(super) fn duplicate_name(&self) -> Option<String> {
        each_section!(self, section => {
            if let Some(name) = repeated_name(section) {
                return Some(name);
            }
        });
        duplicate(&self.endpoints)
    }

    /// Sorts items by name and endpoints by host.
    pub fn sort(&mut self) {
        self.endpoints.sort();
        each_section!(self, section => section.sort_by(|a, b| a.key().cmp(b.key())));
    }

    /// Writes the sections with items as YAML, each sorted by name.
    pub(super) fn write_sections(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        each_section!(self, section => write_section(section, out)?);
        Ok(())
    }

    /// The kinds that have a section, in the order of the lock.
    #[cfg(test)]
    pub(crate) fn section_kinds(&self) -> Vec<EntryKind> {
        fn kind_of<K: ItemKind>(_: &[K]) -> EntryKind {
            K::KIND
        }
        let mut kinds = Vec::new();
        each_section!(self, section => kinds.push(kind_of(section)));
        kinds
    }
}

fn write_section<K: ItemKind>(section: &[K], out: &mut dyn fmt::Write) -> fmt::Result {
    if !section.is_empty() {
        writeln!(out, "{}:", K::SECTION)?;
    }
    let mut items = sorted(section).into_iter();
    items.try_for_each(|item| item.as_item().write(out))
}

fn repeated_name<K: ItemKind>(section: &[K]) -> Option<String> {
    let items = sorted(section);
    let pair = items
        .windows(2)
        .find(|pair| pair[0].key() == pair[1].key())?;
    Some(pair[0].key().to_string())
}

/// The items of `section` in the order of their names.
fn sorted<K: ItemKind>(section: &[K]) -> Vec<&K> {
    let mut items: Vec<&K> = section.iter().collect();
    items.sort_by(|a, b| a.key().cmp(b.key()));
    items
}

/// A kind of item that has a section in the lock.
pub trait LockedKind: ItemKind {
    /// The items of this kind in `lock`.
    fn section(lock: &Lock) -> &[Self];

    /// The items of this kind in `lock`, to change them.
    fn section_mut(lock: &mut Lock) -> &mut Vec<Self>;
}

macro_rules! locked_kinds {
    ($($kind:ident $section:ident;)*) => {$(
        impl LockedKind for $kind {
            fn section(lock: &Lock) -> &[$kind] {
                &lock.$section
            }

            fn section_mut(lock: &mut Lock) -> &mut Vec<$kind> {
                &mut lock.$section
            }
        }
    )*};
}

locked_kinds! {
    LockedImage images;
    LockedFile files;
    LockedChart charts;
    LockedPackageSet packages;
    LockedGitRepository git;
    LockedProvider providers;
}

impl Lock {
    /// The entry of every item, in the lock's order.
    pub fn entries(&self) -> Vec<LockEntry> {
        self.each_entry().collect()
    }

    /// Like [`entries`](Lock::entries), one at a time: all entries together take more memory than
    /// the lock.
    pub fn each_entry(&self) -> impl Iterator<Item = LockEntry> {
        self.items().map(LockedItem::entry)
    }

    /// The digests of all blobs and manifests of the lock. A digest that several items share is
    /// repeated.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        self.each_entry()
            .flat_map(|entry| entry.parts)
            .map(|part| part.descriptor.digest)
    }

    /// The entry of the item at position `at` of [`items`](Lock::items).
    ///
    /// # Panics
    /// If the lock has no such item.
    pub fn entry(&self, at: usize) -> LockEntry {
        self.item(at)
            .map_or_else(|| panic!("the lock has no item {at}"), LockedItem::entry)
    }
}

/// A loss that the manifest accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedLoss {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name under which the item would be locked.
    pub name: String,
    /// Why the loss is accepted, for reports.
    pub reason: String,
    /// The last day on which the loss is accepted, `YYYY-MM-DD`.
    pub until: String,
}

/// An item that could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnresolvedItem {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name under which the item would be locked.
    pub name: String,
    /// Why the item could not be resolved.
    pub cause: String,
}

/// A host that cannot be mirrored and must stay reachable.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Host name or IP address; a leading `*.` matches every subdomain.
    pub host: String,
    /// The TCP port that must be reachable.
    pub port: u16,
    /// What the endpoint is needed for. Several reasons are joined by `; `.
    pub why: String,
    /// The roles of the machines that need it, sorted; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
}

impl Endpoint {
    /// Whether machines of this role need the endpoint.
    pub fn is_for(&self, role: &str) -> bool {
        self.from.is_empty() || self.from.iter().any(|one| one == role)
    }

    /// Merges `other`, an endpoint with the same host and port: the reasons and the roles of both.
    pub fn join(&mut self, other: &Endpoint) {
        let mut reasons: Vec<&str> = self.why.split("; ").chain(other.why.split("; ")).collect();
        reasons.sort_unstable();
        reasons.dedup();
        self.why = reasons.join("; ");
        // an empty list means all roles, which include those of the other list
        if self.from.is_empty() || other.from.is_empty() {
            self.from.clear();
            return;
        }
        self.from.extend_from_slice(&other.from);
        self.from.sort_unstable();
        self.from.dedup();
    }
}

/// `host:port`, with brackets around an IPv6 address.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A host and port that two endpoints share, for messages.
pub(super) fn duplicate(endpoints: &[Endpoint]) -> Option<String> {
    let mut seen = BTreeSet::new();
    endpoints
        .iter()
        .find(|endpoint| !seen.insert((&endpoint.host, endpoint.port)))
        .map(|endpoint| format!("the endpoint {endpoint}"))
}

// The referrers that `lock` found and could not read. The lock lists them as unresolved, with the
// name of their item in front, so that the loss is not forgotten and the next run tries again.

/// The name of a lost referrer in the lock and in reports: the name of its item, and its digest or
/// tag. The blank tells it from the name of an image.
pub fn lost_referrer_name(item: &str, reference: &str) -> String {
    format!("{item} {reference}")
}

/// The item in the name of a lost referrer.
pub fn lost_referrer_item(name: &str) -> Option<&str> {
    Some(name.split_once(' ')?.0)
}

/// The report item of a referrer that was lost or skipped.
pub fn referrer_item(
    item: &str,
    referrer: &Descriptor,
    status: ItemStatus,
    reason: impl Into<String>,
) -> ReportItem {
    ReportItem {
        digest: Some(referrer.digest.clone()),
        bytes: Some(referrer.size),
        ..ReportItem::new(
            EntryKind::Referrer,
            lost_referrer_name(item, &referrer.digest.to_string()),
            status,
            Some(reason.into()),
        )
    }
}

impl Lock {
    /// The referrers that could not be read, each with the name of its item.
    pub fn lost_referrers(&self) -> impl Iterator<Item = (&str, &UnresolvedItem)> {
        let referrers = self.unresolved.iter();
        let referrers = referrers.filter(|lost| lost.kind == EntryKind::Referrer);
        referrers.filter_map(|lost| Some((lost_referrer_item(&lost.name)?, lost)))
    }

    /// The lock without the manifests and blobs of referrers that have these names, which contain
    /// their digests.
    pub fn without_referrers<'n>(&self, names: impl Iterator<Item = &'n str>) -> Cow<'_, Lock> {
        let mut lost: BTreeMap<&str, BTreeSet<Digest>> = BTreeMap::new();
        for name in names {
            if let Some((item, digest)) = name.split_once(' ')
                && let Ok(digest) = digest.parse()
            {
                lost.entry(item).or_default().insert(digest);
            }
        }
        if lost.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut lock = self.clone();
        for image in &mut lock.images {
            if let Some(lost) = lost.get(&*image.name.to_string()) {
                remove(lost, &mut image.referrers, &mut image.referrer_blobs);
                // attestations, which the index lists
                let manifests = image.manifests.iter().map(|child| &child.digest);
                let listed = manifests.chain(image.blobs.iter().map(|blob| &blob.digest));
                image.absent = listed.filter(|own| lost.contains(own)).cloned().collect();
            }
        }
        for chart in &mut lock.charts {
            if let Some(lost) = lost.get(&*chart.name.to_string()) {
                remove(lost, &mut chart.referrers, &mut chart.referrer_blobs);
            }
        }
        Cow::Owned(lock)
    }
}

fn remove(
    lost: &BTreeSet<Digest>,
    referrers: &mut Option<Vec<LockedReferrer>>,
    blobs: &mut Vec<Descriptor>,
) {
    if let Some(referrers) = referrers {
        referrers.retain(|referrer| !lost.contains(&referrer.digest));
    }
    blobs.retain(|blob| !lost.contains(&blob.digest));
}

/// The missing items of a lock: those that could not be resolved, and those whose loss the manifest
/// accepts until a date.
pub fn losses(lock: &Lock) -> Vec<ReportItem> {
    let unresolved = lock.unresolved.iter().map(|item| {
        missing_item(
            item.kind,
            &item.name,
            ItemStatus::Missing,
            item.cause.clone(),
        )
    });
    unresolved.chain(accepted_losses(lock)).collect()
}

/// The items whose loss the manifest accepts: skipped until the date, and missing after it.
pub fn accepted_losses(lock: &Lock) -> Vec<ReportItem> {
    let today = today().to_string();
    let accepted = lock.missing.iter().map(|loss: &AcceptedLoss| {
        // after the last day, the item counts as missing
        let status = if loss.until >= today {
            ItemStatus::Skipped
        } else {
            ItemStatus::Missing
        };
        missing_item(
            loss.kind,
            &loss.name,
            status,
            format!("{} (accepted until {})", loss.reason, loss.until),
        )
    });
    accepted.collect()
}

fn missing_item(kind: EntryKind, name: &str, status: ItemStatus, reason: String) -> ReportItem {
    ReportItem::new(kind, name.into(), status, Some(reason))
}
