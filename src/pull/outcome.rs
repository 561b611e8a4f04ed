//! The state of the entries of a pull, and its report.

use landfall_content::{
    BlobStore, EntryPart, ListedAttestations, LockEntry, PartOrigin, ShardEntry, TransferError,
    TransferOutcome,
};
use landfall_http::ErrorKind;
use landfall_item::lockfile::referrer_item;
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem, TransferSide};
use landfall_model::{Digest, media_type, trim_index};
use std::collections::HashMap;

/// The maximum number of origins that are tried for one blob.
const ORIGINS: usize = 4;

/// The state of all entries of a pull.
#[derive(Default)]
pub(super) struct PullOutcome {
    /// The entries of the lock, reduced to the parts that this shard fetches.
    pub(super) shard_entries: Vec<ShardEntry>,
    pub(super) parts: HashMap<Digest, BlobFetch>,
    /// The number of parts that each entry still waits for.
    pub(super) open: Vec<usize>,
    /// The error of a full disk. It is also the reason of the items whose tasks were cancelled.
    full: Option<String>,
    /// The message of the watchdog, if it ended the transfers.
    pub(super) stuck: Option<String>,
}

/// The state of a blob or manifest to fetch.
#[derive(Default)]
pub(super) struct BlobFetch {
    /// The parts that need the blob, by entry and position.
    pub(super) wanted: Vec<(usize, usize)>,
    /// The result; `None` before the task ends, or if it was cancelled, was aborted or panicked.
    result: Option<Result<TransferOutcome, TransferError>>,
}

impl PullOutcome {
    /// The state of `entry_count` entries before the first transfer. Their parts are added later.
    pub(super) fn new(entry_count: usize) -> PullOutcome {
        PullOutcome {
            open: vec![0; entry_count],
            ..PullOutcome::default()
        }
    }

    /// Returns a part for each origin that has the blob, at most [`ORIGINS`] of them.
    pub(super) fn origins(&self, digest: &Digest) -> Vec<EntryPart> {
        let wanted = self
            .parts
            .get(digest)
            .into_iter()
            .flat_map(|fetch| &fetch.wanted);
        let mut parts: Vec<EntryPart> = Vec::new();
        for (at, part) in wanted {
            let part = &self.shard_entries[*at].entry.parts[*part];
            if !parts.iter().any(|known| known.origin == part.origin) {
                parts.push(part.clone());
            }
            if parts.len() == ORIGINS {
                break;
            }
        }
        parts
    }

    /// Records the result of a task, and reports the entries that it completes.
    pub(super) fn record_result(
        &mut self,
        digest: Digest,
        result: Result<TransferOutcome, TransferError>,
        progress: &dyn Progress,
    ) {
        if let Err(error) = &result
            && error.is_full()
        {
            self.full.get_or_insert_with(|| error.to_string());
        }
        progress.parts_done(1);
        let fetch = self.parts.entry(digest).or_default();
        fetch.result = Some(result);
        for (at, _) in std::mem::take(&mut fetch.wanted) {
            self.open[at] -= 1;
            if self.open[at] == 0 {
                progress.item(&self.shard_entries[at].entry.name);
            }
        }
    }

    /// Writes the trimmed indexes of an entry. They are computed from the whole indexes, so this
    /// runs after all transfers.
    pub(super) fn compute_trimmed(&mut self, entry: &LockEntry, into: &dyn BlobStore) {
        for part in &entry.parts {
            if let PartOrigin::Trimmed { of, keep } = &part.origin {
                let digest = &part.descriptor.digest;
                if into.has_blob(&part.descriptor, false).unwrap_or(false) {
                    continue;
                }
                let result = into
                    .read(of)
                    .map_err(invalid_source)
                    .and_then(|index| trim_index(&index, keep).map_err(invalid_source))
                    .and_then(|bytes| Ok(into.put(&part.descriptor, &bytes)?));
                if let Err(error) = result {
                    self.parts.entry(digest.clone()).or_default().result = Some(Err(error));
                }
            }
        }
    }

    /// Whether the source did not deliver a part of an entry.
    pub(super) fn lacks_part(&self, entry: &LockEntry) -> bool {
        entry.parts.iter().any(|part| {
            let fetch = self.parts.get(&part.descriptor.digest);
            let failed = fetch.and_then(|fetch| fetch.result.as_ref()?.as_ref().err());
            failed.is_some_and(|error| error.side == TransferSide::Source)
        })
    }

    /// The item of the report for an entry, and one for each part of its referrers that the source
    /// did not deliver: they do not affect the entry itself. `attestations` are those of the entry,
    /// if the source did not deliver a part of it.
    pub(super) fn items(
        &self,
        shard_entry: &ShardEntry,
        attestations: &ListedAttestations,
    ) -> (ReportItem, Vec<ReportItem>) {
        let entry = &shard_entry.entry;
        let is_of_referrers =
            |digest| entry.is_of_referrers(digest) || attestations.contains(digest);
        let mut status = ItemStatus::Present;
        let mut reason = None;
        let mut lost = Vec::new();
        for part in &entry.parts {
            match self
                .parts
                .get(&part.descriptor.digest)
                .map(|fetch| &fetch.result)
            {
                None => {}
                Some(Some(Ok(TransferOutcome::Received(1..)))) if status == ItemStatus::Present => {
                    status = ItemStatus::Done
                }
                Some(Some(Ok(_))) => {}
                Some(Some(Err(error)))
                    if error.side == TransferSide::Source
                        && is_of_referrers(&part.descriptor.digest) =>
                {
                    let reason = failure_reason(entry, part, error);
                    let failed = ItemStatus::Failed;
                    lost.push(referrer_item(&entry.name, &part.descriptor, failed, reason));
                }
                Some(result) => {
                    status = ItemStatus::Failed;
                    reason.get_or_insert_with(|| match (result, &self.full) {
                        (Some(Err(error)), None) => failure_reason(entry, part, error),
                        (Some(Err(error)), Some(_)) if !error.is_full() => {
                            failure_reason(entry, part, error)
                        }
                        (_, Some(full)) => format!("destination: {full}"),
                        (_, None) => {
                            let stuck = self.stuck.as_deref();
                            format!(
                                "source: {}",
                                stuck.unwrap_or("its transfer ended without a result")
                            )
                        }
                    });
                }
            }
        }
        let item = shard_entry.item();
        let item = ReportItem {
            status,
            reason: reason.or(item.reason),
            ..item
        };
        (item, lost)
    }
}

fn invalid_source(error: impl ToString) -> TransferError {
    TransferError::new(TransferSide::Source, ErrorKind::Invalid, error.to_string())
}

/// The reason of an item whose part failed. For a set of packages, it contains the URL of the
/// failed file, and what to do if the repository has replaced that file.
fn failure_reason(entry: &LockEntry, part: &EntryPart, error: &TransferError) -> String {
    let why = format!("{}: {error}", error.side);
    let Some(url) = part
        .origin
        .url()
        .filter(|_| entry.kind == EntryKind::Package)
    else {
        return why;
    };
    let is_metadata = part.descriptor.media_type == media_type::OCTETS;
    // A package repository replaces metadata and packages. The store with which the set was locked
    // has the metadata, but not the packages.
    let help = if !error.may_be_elsewhere() {
        ""
    } else if is_metadata {
        "; the repository has replaced this metadata: pull with the store that `landfall lock` \
         used (`--store DIR`, or a copy of it), or lock the current metadata with `landfall lock \
         --refresh`"
    } else {
        "; if the repository has replaced the package, `landfall lock --refresh` locks its current \
         version"
    };
    format!("{url}: {why}{help}")
}
