//! The state of a push while it runs: the result of each delivery, and the report on all of them.

use super::locks;
use super::options::PushOptions;
use super::outcome::{Moved, Pushed, Replaced};
use super::plan::{Delivery, TagState};
use super::problem::{Problem, ProblemKind};
use super::receipt::{Delivered, Receipt};
use super::skipped::NOT_THIS_KIND;
use super::uploader::Uploader;
use landfall_content::TransferError;
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::{Lock, losses};
use landfall_model::config::IndexPolicy;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, TransferSide};
use landfall_model::{DestinationMap, Digest, Shard};
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
                self.results[at].get_or_insert_with(|| Err(invalid_error(side, &problem.message)));
            }
        }
        if problems.iter().any(|one| one.stops_all(all_or_nothing)) {
            for at in std::mem::take(&mut todo) {
                self.results[at]
                    .get_or_insert_with(|| Err(invalid_error(TransferSide::Destination, NOT_SENT)));
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
        for result in self.results.iter_mut().filter(|result| result.is_none()) {
            let message = message.clone();
            *result = Some(Err(TransferError::new(
                TransferSide::Destination,
                ErrorKind::Local,
                message,
            )));
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
        let needed_bytes = self.needed_bytes;
        let unlisted = self.unlisted;
        let mut moved = self.moved;
        moved.sort_by(|a, b| a.at.cmp(&b.at));
        Pushed {
            items,
            problems: self.problems,
            is_stopped: self.is_stopped,
            moved,
            trimmed: replaced,
            unlisted,
            needed_bytes,
            receipt,
        }
    }
}

fn invalid_error(side: TransferSide, message: &str) -> TransferError {
    TransferError::new(side, ErrorKind::Invalid, message)
}
