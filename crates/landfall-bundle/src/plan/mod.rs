//! Planning: the content of a bundle and its order, and the content that a delta omits.

pub(crate) mod delta_base;

use crate::error::{BundleError, lines};
use crate::format::blob_recipe::{BlobRecipe, BlobReference};
use crate::format::contents::{ContentsIndex, Serial};
use crate::format::header;
use crate::format::names::{BaseName, FRONT_LEN, ItemName, LAYOUT, LOCK, MissingItem};
use crate::format::stored::{CHUNK, ContentForm, stored_len};
use crate::recipe::make::RecipeFile;
use landfall_content::store::LayoutIndex;
use landfall_content::{BlobRead, ListedAttestations, LockEntry, PartOrigin};
use landfall_item::lockfile::Lock;
use landfall_model::report::{EntryKind, ReportItem, and_more};
use landfall_model::sign::SignatureTime;
use landfall_model::{
    Descriptor, Digest, Exit, Failure, Manifest, OCI_LAYOUT, TransferSide, media_type, sum_sizes,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

pub use self::delta_base::DeltaBase;

/// The planned content of a bundle.
#[derive(Debug)]
pub struct PackPlan {
    /// The items that the bundle will contain completely, sorted by kind and name.
    pub items: Vec<ReportItem>,
    /// The items of the lock that the bundle will lack.
    pub missing: Vec<MissingItem>,
    /// The bases of a delta. Empty if nothing is omitted and no recipe uses a blob of a base.
    pub bases: Vec<BaseName>,
    /// The blobs that are omitted because every base has them, sorted by digest.
    pub omitted: Vec<Descriptor>,
    /// The blobs that the bundle will have recipes for, sorted by digest.
    pub recipes: Vec<BlobRecipe>,
    /// The blobs that recipes use, and that the bundle will neither contain nor have recipes for,
    /// sorted by digest.
    pub references: Vec<BlobReference>,
    /// The fingerprint of the lock: SHA-256 of its text.
    pub fingerprint: Digest,
    /// The series and the number of the bundle, if it belongs to a series.
    pub serial: Option<Serial>,
    /// The entries to write, in the order of the bundle.
    pub entries: Vec<PlannedEntry>,
}

impl PackPlan {
    /// Plans the bundle of `lock` from the content of `blobs`. An item whose absence the manifest
    /// accepts counts as missing only after the accepted date.
    ///
    /// # Errors
    /// If `blobs` cannot be read.
    pub fn new(
        lock: &Lock,
        blobs: &dyn BlobRead,
        today: jiff::civil::Date,
    ) -> Result<PackPlan, BundleError> {
        PackPlan::delta(lock, blobs, &[], today)
    }

    /// Plans a delta: layers and files that every base has are omitted, and `blobs` need not
    /// contain them. A set of packages or a provider counts as missing if its content contradicts
    /// the lock. A set also counts as missing if one of its RPM packages is not signed by a key of
    /// its source.
    ///
    /// # Errors
    /// Like [`PackPlan::new`], and if a manifest cannot be read.
    pub fn delta(
        lock: &Lock,
        blobs: &dyn BlobRead,
        bases: &[DeltaBase],
        today: jiff::civil::Date,
    ) -> Result<PackPlan, BundleError> {
        let mut missing = Vec::new();
        let mut stored_sizes = HashMap::new();
        let mut all_kept = HashSet::new();
        for item in lock.items() {
            let entry = item.entry();
            let mut absent = BTreeMap::new();
            let mut absent_of_referrers: BTreeMap<Digest, String> = BTreeMap::new();
            let failed = BundleError::content(&entry.name);
            let kept = if bases.is_empty() {
                HashSet::new()
            } else {
                delta_base::kept(&entry, blobs).map_err(failed)?
            };
            for part in entry.parts.iter().filter(|part| part.is_stored()) {
                let Descriptor { digest, size, .. } = &part.descriptor;
                if !kept.contains(digest) && delta_base::all_have(bases, &part.descriptor) {
                    continue;
                }
                // items share layers, and a look-up may be a request to an object store
                if !stored_sizes.contains_key(digest) {
                    let found = blobs.stat(digest);
                    stored_sizes.insert(digest.clone(), found.map_err(failed)?);
                }
                let why = match stored_sizes[digest] {
                    Some(found) if found == *size => continue,
                    Some(found) => format!("{digest} with {size} bytes (it has {found})"),
                    None => digest.to_string(),
                };
                if entry.is_of_referrers(&part.descriptor.digest) {
                    absent_of_referrers.insert(digest.clone(), why);
                } else {
                    absent.insert(digest.clone(), why);
                }
            }
            let attestations = if absent.is_empty() {
                ListedAttestations::default()
            } else {
                ListedAttestations::of(&entry, |manifest| blobs.read(manifest).ok())
            };
            let of_attestations = absent.extract_if(.., |digest, _| attestations.contains(digest));
            absent_of_referrers.extend(of_attestations);
            let absent: Vec<String> = absent.into_values().collect();

            // the digest of an item covers neither the signatures of its packages nor the hashes of
            // a provider, and the store also contains items that `pull` refused
            let has_claims = matches!(entry.kind, EntryKind::Package | EntryKind::Provider);
            let refused = if absent.is_empty() && has_claims {
                item.contradictions(blobs, SignatureTime::Now)
            } else {
                Vec::new()
            };
            let reason = match (absent.first(), refused.first()) {
                (Some(first), _) => {
                    format!("the store lacks {first}{}", and_more(absent.len() - 1))
                }
                (None, Some(first)) => format!("{first}{}", and_more(refused.len() - 1)),
                (None, None) => {
                    all_kept.extend(kept);
                    if let Some(first) = absent_of_referrers.values().next() {
                        let reason = format!("the store lacks {first}");
                        let absent = absent_of_referrers.keys().cloned().collect();
                        let lost = lost_referrers(&entry, &attestations, absent, blobs);
                        missing.extend(lost.iter().map(|digest| MissingItem {
                            item: ItemName::of_referrer(&entry.name, digest),
                            digest: Some(digest.clone()),
                            reason: reason.clone(),
                        }));
                    }
                    continue;
                }
            };
            missing.push(MissingItem {
                item: ItemName::new(entry.kind, entry.name),
                digest: Some(entry.digest),
                reason,
            });
        }
        let mut plan = PackPlan::with_missing(lock, missing, today);
        // a blob may be a layer of one item, and the config of another item that keeps it
        plan.omit(|blob| !all_kept.contains(&blob.digest) && delta_base::all_have(bases, blob));
        if !plan.omitted.is_empty() {
            plan.bases = delta_base::names(bases, &plan.omitted);
        }
        Ok(plan)
    }

    /// Plans the bundle of `lock` as if all its content were available. Unresolved items of the
    /// lock are missing, and so are items whose accepted date has passed, as in [`PackPlan::new`].
    pub fn of_complete_lock(lock: &Lock, today: jiff::civil::Date) -> PackPlan {
        PackPlan::with_missing(lock, Vec::new(), today)
    }

    fn with_missing(
        lock: &Lock,
        mut missing: Vec<MissingItem>,
        today: jiff::civil::Date,
    ) -> PackPlan {
        missing.extend(lock.unresolved.iter().map(|item| MissingItem {
            item: ItemName::new(item.kind, &item.name),
            digest: None,
            reason: format!("it could not be locked: {}", item.cause),
        }));
        missing.extend(
            lock.missing
                .iter()
                .filter(|item| {
                    let until = item.until.parse::<jiff::civil::Date>();
                    !until.is_ok_and(|until| today <= until)
                })
                .map(|item| MissingItem {
                    item: ItemName::new(item.kind, &item.name),
                    digest: None,
                    reason: format!(
                        "its absence was accepted until {} ({})",
                        item.until, item.reason
                    ),
                }),
        );
        missing.sort_by(|a, b| a.item.cmp(&b.item));
        let without = missing.iter().map(|missing| missing.item.clone()).collect();
        PackPlan {
            missing,
            ..PackPlan::without(lock, &without)
        }
    }

    /// Recreates the plan of a bundle from its index `packed` and the lock that it was packed from.
    /// The bundle must not have recipes.
    pub fn repack(lock: &Lock, packed: &ContentsIndex) -> PackPlan {
        let mut plan = PackPlan::without(lock, &packed.partial.iter().cloned().collect());
        plan.omit(|blob| {
            packed
                .omitted
                .binary_search_by(|out| out.digest.cmp(&blob.digest))
                .is_ok()
        });
        let serial = packed.series.clone().zip(packed.serial);
        let serial = serial.map(|(series, number)| Serial { series, number });
        let missing = packed.partial.iter().map(|item| MissingItem {
            item: item.clone(),
            digest: None,
            reason: "the bundle lacks it".into(),
        });
        PackPlan {
            missing: missing.collect(),
            bases: packed.bases.clone(),
            serial,
            ..plan
        }
    }

    /// Plans the bundle of `lock` with all items except those in `without`.
    pub fn without(lock: &Lock, without: &BTreeSet<ItemName>) -> PackPlan {
        let mut text = lock.to_text();
        let lock = without_lost_referrers(lock, without);
        let mut items: Vec<(usize, ReportItem)> = lock
            .each_entry()
            .map(|entry| entry.item())
            .enumerate()
            .collect();
        items.retain(|(_, item)| !without.contains(&ItemName::new(item.kind, &item.name)));
        items.sort_by(|(_, a), (_, b)| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        let mut layout = LayoutIndex::default();
        layout.add(items.iter().map(|(at, _)| lock.entry(*at)));
        // the plan owns the text, so unused capacity would stay allocated
        text.shrink_to_fit();
        let fingerprint = Digest::sha256(text.as_bytes());
        let front = [
            (
                LAYOUT[0],
                "application/vnd.oci.layout.header.v1+json",
                OCI_LAYOUT.to_vec(),
            ),
            (LAYOUT[1], media_type::OCI_INDEX, layout.to_bytes()),
            (
                LOCK,
                "application/vnd.landfall.lock.v1+yaml",
                text.into_bytes(),
            ),
        ];
        let mut entries: Vec<PlannedEntry> = front
            .map(|(name, kind, bytes)| front_entry(name, kind, bytes))
            .into();
        let mut blobs = blob_entries(items.iter().map(|(at, _)| lock.entry(*at)));
        // stored blobs first, so that the lock determines their offsets; the sort is stable
        blobs.sort_by_key(|entry| entry.form != ContentForm::Stored);
        entries.extend(blobs);
        let items = items.into_iter().map(|(_, item)| item).collect();
        PackPlan {
            items,
            missing: Vec::new(),
            bases: Vec::new(),
            omitted: Vec::new(),
            recipes: Vec::new(),
            references: Vec::new(),
            fingerprint,
            serial: None,
            entries,
        }
    }

    /// Omits the blobs for which the predicate is true.
    fn omit(&mut self, is_had: impl Fn(&Descriptor) -> bool) {
        let blobs = self.entries.split_off(FRONT_LEN);
        let (out, within): (Vec<_>, Vec<_>) = blobs
            .into_iter()
            .partition(|entry| is_had(&entry.descriptor));
        self.entries.extend(within);
        self.omitted = out.into_iter().map(|entry| entry.descriptor).collect();
        self.omitted.sort_by(|a, b| a.digest.cmp(&b.digest));
    }

    /// The entries of the lock that the bundle will contain.
    pub fn included_entries<'l>(&self, lock: &'l Lock) -> Box<dyn Iterator<Item = LockEntry> + 'l> {
        let missing: BTreeSet<ItemName> = self
            .missing
            .iter()
            .map(|missing| missing.item.clone())
            .collect();
        match without_lost_referrers(lock, &missing) {
            Cow::Borrowed(lock) => Box::new(
                lock.each_entry()
                    .filter(move |entry| is_included(entry, &missing)),
            ),
            Cow::Owned(lock) => {
                let entries = lock.each_entry();
                let entries: Vec<_> = entries
                    .filter(|entry| is_included(entry, &missing))
                    .collect();
                Box::new(entries.into_iter())
            }
        }
    }

    /// Fails if the bundle would be partial.
    ///
    /// # Errors
    /// If an item is missing.
    pub fn check_complete(&self) -> Result<(), BundleError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let items = match self.missing.len() {
            1 => "1 item".into(),
            items => format!("{items} items"),
        };
        // Exit 3, as for other runs with missing items. The status is `refused`, because nothing
        // was written.
        let mut failure = Failure::new(
            Exit::Partial,
            format!(
                "{items} would be missing from the bundle; run `landfall lock` and `landfall \
                 pull` again, or pack what is available with --allow-partial\n{}",
                lines(&self.missing)
            ),
        )
        .on(TransferSide::Source);
        failure.refuses = true;
        Err(failure.into())
    }

    /// The blobs that are computed from the lock. They need not be downloaded even if an item has
    /// them too, such as an empty configuration.
    pub fn computed(&self) -> HashSet<&Digest> {
        let entries = self.entries.iter();
        entries
            .filter(|entry| matches!(entry.content, ContentSource::Bytes(_)))
            .map(|entry| &entry.descriptor.digest)
            .collect()
    }

    /// The total size of all blobs in bytes.
    pub fn content_bytes(&self) -> u64 {
        let blobs = &self.entries[FRONT_LEN..];
        sum_sizes(blobs.iter().map(|entry| entry.descriptor.size))
    }

    /// The bytes that the stored entries occupy in the file, without tar headers and padding.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let stored = self
            .entries
            .iter()
            .filter(|entry| entry.form == ContentForm::Stored);
        sum_sizes(stored.map(|entry| stored_len(entry.descriptor.size)))
    }

    /// The maximum size of the file in bytes, if nothing can be compressed.
    pub fn needed_bytes(&self) -> u64 {
        // a line for each omitted blob, and one for its repository in each receipt
        let omitted = self.omitted.len() as u64 * (384 + self.bases.len() as u64 * 384);
        let entries = self.entries.iter().map(max_entry_bytes);
        sum_sizes(entries.chain([omitted, 8192]))
    }
}

/// Whether `entry` is not among the items `missing`.
pub(crate) fn is_included(entry: &LockEntry, missing: &BTreeSet<ItemName>) -> bool {
    !missing.contains(&ItemName::new(entry.kind, &entry.name))
}

/// The lock without the referrers among `missing`.
pub(crate) fn without_lost_referrers<'l>(
    lock: &'l Lock,
    missing: &BTreeSet<ItemName>,
) -> Cow<'l, Lock> {
    let referrers = missing
        .iter()
        .filter(|item| item.kind == EntryKind::Referrer);
    lock.without_referrers(referrers.map(|item| item.name.as_str()))
}

/// The maximum size of an entry in the file, with its rows of the frame table and its line in the
/// contents index.
fn max_entry_bytes(entry: &PlannedEntry) -> u64 {
    let size = entry.descriptor.size;
    // header and padding are frames as well, and the last content frame may be short
    let frames = 3 + size / CHUNK as u64;
    let stored = stored_len(size) + size / 256 + 2 * header::BLOCK as u64 + 64;
    stored + frames * 96 + 512 + 4 * entry.name.len() as u64
}

// The entries of a planned bundle, and the source of their content.

/// An entry to write to the tar.
#[derive(Debug)]
pub struct PlannedEntry {
    pub name: String,
    pub descriptor: Descriptor,
    pub form: ContentForm,
    pub content: ContentSource,
    /// The first item that needs the entry.
    pub item: String,
}

impl PlannedEntry {
    /// The number of frames of its content.
    pub fn chunks(&self) -> usize {
        self.descriptor.size.div_ceil(CHUNK as u64) as usize
    }
}

/// The source of an entry's content.
#[derive(Debug)]
pub enum ContentSource {
    /// The content, computed from the lock.
    Bytes(Vec<u8>),
    /// The blob with the entry's digest in the store.
    Store,
    /// The recipe in this file.
    Recipe(Arc<RecipeFile>),
    /// The index `of` in the store, reduced to the manifests in `keep`.
    Trimmed {
        of: Descriptor,
        keep: BTreeSet<Digest>,
    },
}

fn content(origin: &PartOrigin) -> ContentSource {
    match origin {
        PartOrigin::Computed(bytes) => ContentSource::Bytes(bytes.clone()),
        PartOrigin::Trimmed { of, keep } => ContentSource::Trimmed {
            of: of.clone(),
            keep: keep.clone(),
        },
        PartOrigin::Manifest { .. }
        | PartOrigin::Blob { .. }
        | PartOrigin::Foreign { .. }
        | PartOrigin::Url(_)
        | PartOrigin::Urls(_)
        | PartOrigin::Git { .. }
        | PartOrigin::LargeFile(_)
        | PartOrigin::Local(_) => ContentSource::Store,
    }
}

/// One of the entries before the blobs. Its content is computed from the lock.
fn front_entry(name: &str, kind: &str, bytes: Vec<u8>) -> PlannedEntry {
    let descriptor = Descriptor::of(&bytes, kind);
    let (name, item) = (name.to_owned(), name.to_owned());
    PlannedEntry {
        name,
        descriptor,
        // stored, so that the offsets of the blobs after it do not depend on compression
        form: ContentForm::Stored,
        content: ContentSource::Bytes(bytes),
        item,
    }
}

/// Every blob once, in the order in which the items first need them. A blob that several parts
/// share has the form `Stored` if one of the parts requires it. It has the alphabetically first of
/// their media types, so that the result does not depend on the order of the parts.
fn blob_entries(items: impl Iterator<Item = LockEntry>) -> Vec<PlannedEntry> {
    let mut entries: Vec<PlannedEntry> = Vec::new();
    let mut entry_indexes: BTreeMap<Digest, usize> = BTreeMap::new();
    let parts = items.flat_map(|LockEntry { name, parts, .. }| {
        parts.into_iter().map(move |part| (name.clone(), part))
    });
    for (item, part) in parts {
        let form = ContentForm::of(&part.descriptor.media_type, part.origin.url());
        if let Some(&entry_index) = entry_indexes.get(&part.descriptor.digest) {
            let entry = &mut entries[entry_index];
            // content that is compressed already would not become smaller
            if form == ContentForm::Stored {
                entry.form = form;
            }
            if part.descriptor.media_type < entry.descriptor.media_type {
                entry
                    .descriptor
                    .media_type
                    .clone_from(&part.descriptor.media_type);
            }
            // if another part computes the same blob, it need not be read from the store
            if matches!(entry.content, ContentSource::Store) {
                entry.content = content(&part.origin);
            }
            continue;
        }
        entry_indexes.insert(part.descriptor.digest.clone(), entries.len());
        entries.push(PlannedEntry {
            name: part.descriptor.digest.layout_path(),
            descriptor: part.descriptor,
            form,
            content: content(&part.origin),
            item,
        });
    }
    entries
}

/// The manifests and blobs of referrers of `entry` that are left out if the store lacks those in
/// `absent`: the manifests that name one of them, and what only these manifests name.
/// `attestations` are those that the index of the entry lists.
fn lost_referrers(
    entry: &LockEntry,
    attestations: &ListedAttestations,
    absent: BTreeSet<Digest>,
    blobs: &dyn BlobRead,
) -> BTreeSet<Digest> {
    let mut lost = absent;
    let mut named: BTreeMap<&Digest, BTreeSet<Digest>> = BTreeMap::new();
    let referrers = entry.referrers.iter().filter(|referrer| !referrer.is_child);
    let referrers = referrers.map(|referrer| &referrer.descriptor);
    let listed = entry.parts.iter().map(|part| &part.descriptor);
    let listed = listed.filter(|part| attestations.manifests().contains(&part.digest));
    for manifest in referrers.chain(listed) {
        let digest = &manifest.digest;
        if lost.contains(digest) {
            continue;
        }
        let manifest = blobs.read(manifest).ok();
        match manifest.and_then(|bytes| Manifest::parse(&bytes, None).ok()) {
            Some((manifest, _)) => {
                named.insert(digest, manifest.into_digests());
            }
            None => {
                lost.insert(digest.clone());
            }
        }
    }
    loop {
        let before = lost.len();
        for (digest, content) in &named {
            if !content.is_disjoint(&lost) {
                lost.insert((*digest).clone());
            }
        }
        if lost.len() == before {
            break;
        }
    }
    let kept = named.iter().filter(|(digest, _)| !lost.contains(digest));
    let kept: BTreeSet<&Digest> = kept.flat_map(|(_, content)| content).collect();
    let unneeded = entry.referrer_blobs.iter().chain(attestations.blobs());
    let unneeded: Vec<_> = unneeded.filter(|digest| !kept.contains(digest)).collect();
    lost.extend(unneeded.into_iter().cloned());
    lost
}
