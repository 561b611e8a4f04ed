//! The options, state and outcome of a push: the result of each delivery, the report on all of
//! them, and the receipt.

use super::locks;
use super::plan::{Delivery, NOT_THIS_KIND, TagState};
use super::preflight::{Problem, ProblemKind};
use super::uploader::{Uploader, not_delivered};
use landfall_content::TransferError;
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::{Lock, losses};
use landfall_model::config::{IndexPolicy, ReferrerPolicy};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, TransferSide};
use landfall_model::{DestinationMap, Digest, Exit, Failure, Shard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The reason that is reported for items without a problem if other items stop the push.
const NOT_SENT: &str = "not sent, because other items cannot be delivered";

/// The number of deliveries of each entry.
pub(super) fn count_by_entry(deliveries: &[Delivery]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    deliveries
        .iter()
        .for_each(|delivery| *counts.entry(delivery.entry).or_default() += 1);
    counts
}

/// The state of a push and of each delivery.
pub(super) struct PushRun<'a> {
    lock: &'a Lock,
    deliveries: &'a [Delivery],
    shard: Shard,
    /// The number of destinations of each entry, including those of other shards.
    destinations: BTreeMap<usize, usize>,
    /// The kinds of items that are not pushed.
    skip_kinds: &'a BTreeSet<EntryKind>,
    /// The result of each delivery; `None` while it is pending.
    pub(super) results: Vec<Option<Result<(ItemStatus, Digest), TransferError>>>,
    problems: Vec<Problem>,
    /// Whether problems stop all deliveries.
    is_stopped: bool,
    moved: Vec<Moved>,
    pub(super) needed_bytes: u64,
    pub(super) unlisted: Option<String>,
}

impl<'a> PushRun<'a> {
    pub(super) fn new(
        lock: &'a Lock,
        deliveries: &'a [Delivery],
        shard: Shard,
        destinations: BTreeMap<usize, usize>,
        skip_kinds: &'a BTreeSet<EntryKind>,
    ) -> PushRun<'a> {
        let results = vec![None; deliveries.len()];
        PushRun {
            lock,
            deliveries,
            shard,
            destinations,
            skip_kinds,
            results,
            problems: Vec::new(),
            is_stopped: false,
            moved: Vec::new(),
            needed_bytes: 0,
            unlisted: None,
        }
    }

    /// Records the deliveries that are present and those whose look-up failed without being denied.
    /// Returns the positions of the others; the preflight finds out why a look-up was denied.
    pub(super) async fn record_tag_states(
        &mut self,
        tag_states: &[Result<TagState, HttpError>],
        uploader: &Uploader,
    ) -> Vec<usize> {
        let mut todo = Vec::new();
        for (at, (delivery, tag_state)) in self.deliveries.iter().zip(tag_states).enumerate() {
            let entry = &self.lock.entry(delivery.entry);
            let present = match tag_state {
                Ok(TagState::Whole) => Some(entry.top.digest.clone()),
                // with `index: exact`, the site does not accept a trimmed index
                Ok(TagState::Trimmed) if uploader.index == IndexPolicy::Trimmed => {
                    entry.trimmed().map(|part| part.descriptor.digest.clone())
                }
                Err(error) if error.kind != ErrorKind::Denied => {
                    self.results[at] = Some(Err(TransferError::destination(error.clone())));
                    continue;
                }
                _ => None,
            };
            match present {
                Some(digest) => {
                    self.results[at] = Some(Ok((ItemStatus::Present, digest)));
                    uploader
                        .note_present_entry(entry, &delivery.destination.repository)
                        .await;
                }
                None => todo.push(at),
            }
        }
        todo
    }

    /// Fails the deliveries that a problem stops, or all of them if a problem stops the push.
    /// Returns the deliveries that are still to be made.
    pub(super) fn record_problems(
        &mut self,
        problems: Vec<Problem>,
        mut todo: Vec<usize>,
        all_or_nothing: bool,
    ) -> Vec<usize> {
        for problem in &problems {
            // blobs that a delta omits and no source has are a problem of the bundle
            let side = if problem.kind == ProblemKind::Content {
                TransferSide::Source
            } else {
                TransferSide::Destination
            };
            for &at in &problem.stops {
                let error = || TransferError::new(side, ErrorKind::Invalid, &problem.message);
                self.results[at].get_or_insert_with(|| Err(error()));
            }
        }
        if problems.iter().any(|one| one.stops_all(all_or_nothing)) {
            for at in std::mem::take(&mut todo) {
                self.results[at].get_or_insert_with(|| Err(not_delivered(NOT_SENT)));
            }
        }
        todo.retain(|&at| self.results[at].is_none());
        // a tag that was not replaced is a usual result
        let is_serious = |one: &Problem| all_or_nothing || one.kind != ProblemKind::Tag;
        self.is_stopped = todo.is_empty() && problems.iter().any(is_serious);
        self.problems = problems;
        todo
    }

    /// Adds `whole`, the lock as it was approved, to the registry's list of locks if anything was
    /// delivered or present, unless a problem stopped the whole push: then nothing is uploaded.
    /// Only the first shard does this, because the list is written as a whole. Returns a message if
    /// that fails.
    pub(super) async fn record_lock(
        &self,
        whole: &Lock,
        mapping: &DestinationMap,
        uploader: &Uploader,
        options: &PushOptions,
    ) -> Option<String> {
        if self.is_stopped
            || !self.shard.is_first()
            || !self.results.iter().flatten().any(Result::is_ok)
        {
            return None;
        }
        locks::record_lock(uploader, whole, mapping, options).await
    }

    pub(super) fn note_moved(&mut self, at: usize, tag_state: &Result<TagState, HttpError>) {
        if let (Some(Ok((_, to))), Ok(TagState::Other(from))) = (&self.results[at], tag_state) {
            let delivery = &self.deliveries[at];
            self.moved.push(Moved {
                at: format!("{}:{}", delivery.destination.repository, delivery.tag),
                from: from.clone(),
                to: to.clone(),
            });
        }
    }

    /// Fails the deliveries without a result: those of a stuck run, and those whose task panicked.
    pub(super) fn fail_unfinished(&mut self, stuck: Option<String>) {
        let message = stuck.unwrap_or_else(|| "its delivery ended without a result".to_owned());
        let error = TransferError::new(TransferSide::Destination, ErrorKind::Local, message);
        for result in &mut self.results {
            result.get_or_insert_with(|| Err(error.clone()));
        }
    }

    /// The items that this shard reports: those with a delivery of its own, or all if it is the
    /// only shard.
    fn own_items(&self, items: Vec<ReportItem>) -> Vec<ReportItem> {
        if self.shard.is_only() {
            return items;
        }
        let own = count_by_entry(self.deliveries);
        let own_items = items.into_iter().enumerate().filter_map(|(at, mut item)| {
            let own = own.get(&at)?;
            let all = self.destinations.get(&at)?;
            if own < all {
                item.reason.get_or_insert_with(|| {
                    format!("{own} of its {all} destinations; other shards have the rest")
                });
            }
            Some(item)
        });
        own_items.collect()
    }

    /// Turns the results of the deliveries into one report item for each entry and each referrer
    /// that was not delivered, and the receipt. `skipped` are referrers that are left out of
    /// `whole`, the lock as it was approved.
    pub(super) fn finish(
        self,
        whole: &Lock,
        skipped: Vec<ReportItem>,
        mapping: &DestinationMap,
        uploader: &Uploader,
    ) -> Pushed {
        uploader.note_refused_types();
        let lock = self.lock;
        let mut items: Vec<ReportItem> = lock.each_entry().map(|entry| entry.item()).collect();
        for item in &mut items {
            if self.skip_kinds.contains(&item.kind) {
                item.status = ItemStatus::Skipped;
                item.reason = Some(NOT_THIS_KIND.into());
            }
        }
        let mut replaced = Vec::new();
        let mut delivered = Vec::new();
        for (delivery, result) in self.deliveries.iter().zip(&self.results) {
            let entry = lock.entry(delivery.entry);
            let item = &mut items[delivery.entry];
            match result {
                Some(Ok((status, digest))) => {
                    // an entry is done if any of its destinations is, unless one failed
                    if *status == ItemStatus::Done && item.status == ItemStatus::Present {
                        item.status = ItemStatus::Done;
                    }
                    let changed = *digest != entry.top.digest;
                    let change = Replaced {
                        name: entry.name.clone(),
                        from: entry.top.digest.clone(),
                        to: digest.clone(),
                    };
                    if changed && !replaced.contains(&change) {
                        replaced.push(change);
                    }
                    delivered.push(Delivered {
                        name: entry.name.clone(),
                        at: format!("{}:{}", delivery.destination.repository, delivery.tag),
                        digest: digest.clone(),
                        trimmed_from: changed.then(|| entry.top.digest.clone()),
                    });
                }
                Some(Err(error)) => {
                    item.status = ItemStatus::Failed;
                    item.reason
                        .get_or_insert_with(|| format!("{}: {error}", error.side));
                }
                // only a dry run leaves deliveries without a result
                None if item.status != ItemStatus::Failed => {
                    item.status = ItemStatus::Skipped;
                    let target = format!("{}:{}", delivery.destination, delivery.tag);
                    item.reason = Some(match item.reason.take() {
                        Some(others) => format!("{others} and {target}"),
                        None => format!("would go to {target}"),
                    });
                }
                None => {}
            }
        }
        let mut items = self.own_items(items);
        items.extend(uploader.take_lost_referrers());
        if self.shard.is_first() {
            items.extend(skipped);
            items.extend(losses(lock));
        }
        let receipt = Receipt {
            series: BTreeMap::new(),
            version: 1,
            registry: mapping.target().registry.clone(),
            lock: whole.fingerprint(),
            items: delivered,
            blobs: uploader.take_blob_locations(),
            pruned: Vec::new(),
        };
        let mut moved = self.moved;
        moved.sort_by(|a, b| a.at.cmp(&b.at));
        Pushed {
            items,
            problems: self.problems,
            is_stopped: self.is_stopped,
            moved,
            trimmed: replaced,
            unlisted: self.unlisted,
            needed_bytes: self.needed_bytes,
            receipt,
        }
    }
}

/// The outcome of a push.
#[derive(Debug)]
pub struct Pushed {
    /// One report item for each entry that this shard delivers. The first shard also has one for
    /// each loss that the lock records.
    pub items: Vec<ReportItem>,
    /// Problems that the preflight found.
    pub problems: Vec<Problem>,
    /// Whether the problems stopped all deliveries.
    pub is_stopped: bool,
    /// Tags that pointed to another digest and were replaced.
    pub moved: Vec<Moved>,
    /// Indexes that were replaced by their trimmed form.
    pub trimmed: Vec<Replaced>,
    /// The message of the error if the registry's list of locks could not be updated.
    pub unlisted: Option<String>,
    /// The maximum number of bytes to upload, determined before the push.
    pub needed_bytes: u64,
    /// The receipt: the content of the registry after the push.
    pub receipt: Receipt,
}

/// An index that the registry has in its trimmed form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Replaced {
    /// The name of the item in the lock.
    pub name: String,
    /// The digest in the lock.
    pub from: Digest,
    /// The digest of the trimmed index.
    pub to: Digest,
}

/// A tag that pointed to another digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Moved {
    /// `repository:tag` at the registry.
    pub at: String,
    /// The digest that the tag pointed to before the push.
    pub from: Digest,
    /// The digest that the tag points to after the push.
    pub to: Digest,
}

/// The content of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The version of the format: 1.
    pub version: u32,
    /// The registry, `host[:port]`.
    pub registry: String,
    /// The fingerprint of the lock.
    pub lock: Digest,
    /// The destination tags that the registry has.
    pub items: Vec<Delivered>,
    /// The blobs that were uploaded, mounted or looked up, each with a repository that has it.
    pub blobs: BTreeMap<Digest, String>,
    /// The serial number of the last accepted bundle of each series.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, u64>,
    /// The manifests that `push --prune` deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pruned: Vec<PrunedManifest>,
}

/// A manifest that was removed because nothing needed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrunedManifest {
    /// The repository that had it.
    pub repository: String,
    /// The digest of the manifest.
    pub digest: Digest,
    /// The tags that pointed to the manifest. Empty if the manifest was found only through an index
    /// that contains it or through its subject.
    pub tags: Vec<String>,
}

/// One destination tag of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivered {
    /// The name in the lock.
    pub name: String,
    /// `repository:tag` at the registry.
    pub at: String,
    /// The digest that the tag points to.
    pub digest: Digest,
    /// The digest in the lock, if the tag points to the trimmed index.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trimmed_from: Option<Digest>,
}

/// The options of a push.
#[derive(Debug, Clone, Default)]
pub struct PushOptions {
    /// Replace tags that point to another digest.
    pub move_tags: bool,
    /// Abort the whole push if the preflight finds a problem, such as a tag that points to another
    /// digest. By default only the affected items fail.
    pub all_or_nothing: bool,
    /// Look up every manifest and blob of items whose tag is right, and upload missing ones.
    /// Otherwise an item with the right tag and all referrers counts as complete, and the receipt
    /// omits blobs that were not looked up.
    pub recheck: bool,
    /// Look up the content of the registry, and upload nothing.
    pub dry_run: bool,
    /// Create missing Harbor projects.
    pub create_projects: bool,
    /// Start no further delivery, and set no further tag, once content turns out damaged.
    pub stop_at_damage: bool,
    /// What to do if the registry refuses an index with missing children.
    pub index: IndexPolicy,
    /// What to do with referrers. Those that the site's rules demand are always required.
    pub referrers: ReferrerPolicy,
    /// The manifests and blobs of signatures that the site made itself: they are never skipped.
    pub own_signatures: BTreeSet<Digest>,
    /// The kinds of items that are not pushed.
    pub skip_kinds: BTreeSet<EntryKind>,
}

/// The failure of a push whose registry cannot be reached, or refuses a look-up.
pub(crate) fn unreachable(error: &HttpError) -> Failure {
    // an account that the user configured and that cannot be read
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<Failure>());
    if cause.is_some_and(|cause| cause.exit == Exit::Usage) {
        return Failure::usage(error.to_string());
    }
    Failure::failed(error.to_string()).on(TransferSide::Destination)
}
