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
    #[serde(default)]
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

/// The item sections of `$lock`, a shared or mutable reference, in the order of the lock.
macro_rules! sections_of {
    ($lock:expr) => {{
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
        vec![images, files, charts, packages, git, providers]
    }};
}

impl Lock {
    fn sections(&self) -> Vec<&dyn LockSection> {
        sections_of!(self)
    }

    fn sections_mut(&mut self) -> Vec<&mut dyn LockSection> {
        sections_of!(self)
    }

    /// All items, section by section.
    pub fn items(&self) -> impl Iterator<Item = &dyn LockedItem> {
        self.sections().into_iter().flat_map(LockSection::items)
    }

    /// The names that changed, among the names of items and the hosts of endpoints. Sorted.
    pub fn changed_names(&self) -> Vec<&'static ChangedName> {
        let items = self.items().map(|item| item.name().into_owned());
        let unresolved = self.unresolved.iter().map(|item| item.name.clone());
        let hosts = self.endpoints.iter().map(|endpoint| endpoint.host.clone());
        ChangedName::among(items.chain(unresolved).chain(hosts))
    }

    /// The item at position `at` of [`items`](Lock::items).
    pub fn item(&self, mut at: usize) -> Option<&dyn LockedItem> {
        for section in self.sections() {
            if at < section.len() {
                return section.item(at);
            }
            at -= section.len();
        }
        None
    }

    /// Keeps only the items for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(&dyn LockedItem) -> bool) {
        for section in self.sections_mut() {
            section.retain(&keep);
        }
    }

    /// Adds all items, endpoints, losses and unresolved items of `other`, and its name if this lock
    /// has none.
    pub fn append(&mut self, other: Lock) {
        let Lock {
            version: _,
            name,
            images,
            files,
            charts,
            packages,
            git,
            providers,
            endpoints,
            missing,
            unresolved,
        } = other;
        self.images.extend(images);
        self.files.extend(files);
        self.charts.extend(charts);
        self.packages.extend(packages);
        self.git.extend(git);
        self.providers.extend(providers);
        self.name = self.name.take().or(name);
        self.endpoints.extend(endpoints);
        self.missing.extend(missing);
        self.unresolved.extend(unresolved);
    }

    /// Frees the memory that appending reserved. A lock may have a million blobs.
    pub(super) fn shrink(&mut self) {
        for section in self.sections_mut() {
            section.shrink();
        }
    }

    /// A name that two items of one kind, or two endpoints, share.
    pub(super) fn duplicate_name(&self) -> Option<String> {
        self.sections()
            .into_iter()
            .find_map(LockSection::duplicate_name)
            .or_else(|| duplicate(&self.endpoints))
    }

    /// Sorts items by name and endpoints by host.
    pub fn sort(&mut self) {
        self.endpoints.sort();
        for section in self.sections_mut() {
            section.sort();
        }
    }

    /// Writes the sections with items as YAML, each sorted by name.
    pub(super) fn write_sections(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.sections()
            .into_iter()
            .try_for_each(|section| section.write(out))
    }

    /// The kinds that have a section, in the order of the lock.
    #[cfg(test)]
    pub(crate) fn section_kinds(&self) -> Vec<EntryKind> {
        self.sections().into_iter().map(LockSection::kind).collect()
    }
}

/// A kind of item that has a section in the lock.
pub trait LockedKind: ItemKind {
    /// The items of this kind in `lock`.
    fn section(lock: &Lock) -> &[Self];

    /// The items of this kind in `lock`, to change them.
    fn section_mut(lock: &mut Lock) -> &mut Vec<Self>;
}

impl LockedKind for LockedImage {
    fn section(lock: &Lock) -> &[LockedImage] {
        &lock.images
    }

    fn section_mut(lock: &mut Lock) -> &mut Vec<LockedImage> {
        &mut lock.images
    }
}

impl LockedKind for LockedFile {
    fn section(lock: &Lock) -> &[LockedFile] {
        &lock.files
    }

    fn section_mut(lock: &mut Lock) -> &mut Vec<LockedFile> {
        &mut lock.files
    }
}

impl LockedKind for LockedChart {
    fn section(lock: &Lock) -> &[LockedChart] {
        &lock.charts
    }

    fn section_mut(lock: &mut Lock) -> &mut Vec<LockedChart> {
        &mut lock.charts
    }
}

impl LockedKind for LockedPackageSet {
    fn section(lock: &Lock) -> &[LockedPackageSet] {
        &lock.packages
    }

    fn section_mut(lock: &mut Lock) -> &mut Vec<LockedPackageSet> {
        &mut lock.packages
    }
}

impl LockedKind for LockedGitRepository {
    fn section(lock: &Lock) -> &[LockedGitRepository] {
        &lock.git
    }

    fn section_mut(lock: &mut Lock) -> &mut Vec<LockedGitRepository> {
        &mut lock.git
    }
}

impl LockedKind for LockedProvider {
    fn section(lock: &Lock) -> &[LockedProvider] {
        &lock.providers
    }

    fn section_mut(lock: &mut Lock) -> &mut Vec<LockedProvider> {
        &mut lock.providers
    }
}

/// The items of one kind, as a list that does not depend on their type.
trait LockSection {
    #[cfg(test)]
    fn kind(&self) -> EntryKind;
    fn len(&self) -> usize;
    fn item(&self, at: usize) -> Option<&dyn LockedItem>;
    fn items(&self) -> Box<dyn Iterator<Item = &dyn LockedItem> + '_>;
    fn retain(&mut self, keep: &dyn Fn(&dyn LockedItem) -> bool);
    fn shrink(&mut self);
    fn sort(&mut self);
    fn duplicate_name(&self) -> Option<String>;
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result;
}

impl<K: ItemKind> LockSection for Vec<K> {
    #[cfg(test)]
    fn kind(&self) -> EntryKind {
        K::KIND
    }

    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn item(&self, at: usize) -> Option<&dyn LockedItem> {
        self.get(at).map(|item| item as &dyn LockedItem)
    }

    fn items(&self) -> Box<dyn Iterator<Item = &dyn LockedItem> + '_> {
        Box::new(self.iter().map(|item| item as &dyn LockedItem))
    }

    fn retain(&mut self, keep: &dyn Fn(&dyn LockedItem) -> bool) {
        Vec::retain(self, |item| keep(item));
    }

    fn shrink(&mut self) {
        self.shrink_to_fit();
    }

    fn sort(&mut self) {
        self.sort_by(|a, b| a.key().cmp(b.key()));
    }

    fn duplicate_name(&self) -> Option<String> {
        let mut keys: Vec<_> = self.iter().map(ItemKind::key).collect();
        keys.sort_unstable();
        let pair = keys.windows(2).find(|pair| pair[0] == pair[1])?;
        Some(pair[0].to_string())
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut items: Vec<&K> = self.iter().collect();
        items.sort_by(|a, b| a.key().cmp(b.key()));
        if !items.is_empty() {
            writeln!(out, "{}:", K::SECTION)?;
        }
        items.into_iter().try_for_each(|item| item.write(out))
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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
        kind: EntryKind::Referrer,
        name: lost_referrer_name(item, &referrer.digest.to_string()),
        digest: Some(referrer.digest.clone()),
        bytes: Some(referrer.size),
        packages: 0,
        status,
        reason: Some(reason.into()),
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
    ReportItem {
        kind,
        name: name.into(),
        digest: None,
        bytes: None,
        packages: 0,
        status,
        reason: Some(reason),
    }
}
