//! The outcome of an update: versions that moved or are held back, and changes upstream without a
//! new version.

use super::lookups::{RequestedItem, requested_items};
use super::version_ages::{AgeWait, AgesOutcome};
use landfall_git::ObjectId;
use landfall_item::manifest::{FileOverrides, MergedManifest};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::report::{EntryKind, ItemStatus, Notice, NoticeKind, ReportItem};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A version that moved or is held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct VersionMove {
    /// The name of the variable, the name of the item without its version, or the path of the list,
    /// trust root or TUF root.
    pub(crate) name: String,
    /// The position of the version, written as `file:line:column`.
    #[serde(serialize_with = "serialize_position")]
    pub(crate) at: SourceLocation,
    /// The update policy as it is written; `list` for a list, and `tuf` for a trust root or TUF
    /// root.
    pub(crate) policy: String,
    /// The version before the update; for a list, trust root or TUF root, the digest.
    pub(crate) from: String,
    /// The version after the update; `None` if no newer version can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// For a package: the source that offers the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// The names of the items that are requested only since the move, and of the sets of packages
    /// whose request changed.
    pub(crate) items: Vec<String>,
    /// Newer versions that cannot be used.
    pub(crate) held: Vec<HeldVersion>,
    /// Newer versions that wait for their minimum age, the newest first.
    pub(crate) waiting: Vec<WaitingVersion>,
}

fn serialize_position<S: Serializer>(
    at: &SourceLocation,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// A newer version that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct HeldVersion {
    pub(crate) version: String,
    pub(crate) why: String,
}

/// A newer version that waits for its minimum age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitingVersion {
    pub(crate) version: String,
    /// When this project first saw the version, or the content that it has now.
    pub(crate) first_seen: String,
    /// The time from which the version can be used.
    pub(crate) until: String,
}

impl WaitingVersion {
    pub(super) fn new(version: &str, wait: AgeWait) -> WaitingVersion {
        WaitingVersion {
            version: version.to_owned(),
            first_seen: wait.first_seen.to_string(),
            until: wait.until.to_string(),
        }
    }
}

/// A change upstream to an item whose version did not move: the item has another digest or, for a
/// file, another size, or it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamNotice {
    pub(crate) item: EntryKind,
    /// Whether the lock has a pin of the item.
    pub(crate) is_locked: bool,
    pub(crate) notice: Notice,
    /// The wait of a new digest that is not old enough.
    pub(crate) wait: Option<AgeWait>,
}

impl UpstreamNotice {
    pub(crate) fn name(&self) -> &str {
        &self.notice.name
    }

    /// Whether upstream no longer has the item.
    pub(crate) fn is_gone(&self) -> bool {
        self.notice.kind == NoticeKind::Gone
    }
}

/// The outcome of an update.
#[derive(Debug, Default)]
pub(crate) struct UpdateOutcome {
    /// Versions that moved or are held back: first trust roots, then lists, variables with `keep`,
    /// other versions, entries with `keep`, and at the end versions that only wait. Each group has
    /// the order of the manifests.
    pub(crate) moves: Vec<VersionMove>,
    /// Changes upstream to items whose versions did not move.
    pub(crate) noticed: Vec<UpstreamNotice>,
    /// One report item for each look-up that failed.
    pub(crate) failed: Vec<ReportItem>,
    /// The digest of each manifest, list, trust root and TUF root when the update read it. A file
    /// that differs when the results are written was edited meanwhile, and is left unchanged.
    pub(crate) before: BTreeMap<PathBuf, Digest>,
    /// The new texts of the files that change.
    pub(crate) edited: FileOverrides,
    /// The manifests, loaded with the texts in `edited`.
    pub(crate) manifest: MergedManifest,
    /// The items that must be locked again although their names are the same: their tag moved and
    /// their policy is `digest`.
    pub(crate) relock: BTreeSet<(EntryKind, String)>,
    /// The digests that the run looked up, whose age and signatures it checked.
    pub(crate) looked_up: BTreeMap<(EntryKind, String), Digest>,
    /// The objects of the tags of git repositories that the run listed, by URL and tag. Their age
    /// was checked.
    pub(crate) git_tags: BTreeMap<(String, String), ObjectId>,
    /// The first sights of versions after the run, and notices about their ages.
    pub(crate) ages: AgesOutcome,
    /// The patterns of `--only` that match nothing in the manifests.
    pub(crate) unused_only: Vec<String>,
    /// The path of the file of first sights.
    pub(crate) sights_path: PathBuf,
}

impl UpdateOutcome {
    /// Whether something is newer, moved or gone. Changes that wait for their minimum age do not
    /// count.
    pub(crate) fn has_news(&self) -> bool {
        self.noticed.iter().any(|noticed| noticed.wait.is_none())
            || self
                .moves
                .iter()
                .any(|one| one.to.is_some() || !one.held.is_empty())
    }

    /// One report item for each requested item and each failed look-up, for a report without a
    /// lock.
    pub(crate) fn items(&self) -> Vec<ReportItem> {
        let mut items: Vec<ReportItem> = requested_items(&self.manifest)
            .into_iter()
            .map(|RequestedItem { kind, name, .. }| {
                let gone = self
                    .noticed
                    .iter()
                    .find(|one| one.is_gone() && (one.item, one.name()) == (kind, &*name));
                let (status, reason) = match gone {
                    None => (ItemStatus::Present, None),
                    Some(UpstreamNotice {
                        is_locked: true, ..
                    }) => (
                        ItemStatus::Missing,
                        Some("upstream does not have it any more"),
                    ),
                    Some(_) => (ItemStatus::Missing, Some("upstream does not have it")),
                };
                ReportItem {
                    kind,
                    name,
                    digest: None,
                    bytes: None,
                    packages: 0,
                    status,
                    reason: reason.map(str::to_owned),
                }
            })
            .collect();
        self.add_failures(&mut items);
        items
    }

    /// Marks the items whose look-up failed, and adds those that `items` does not have.
    pub(crate) fn add_failures(&self, items: &mut Vec<ReportItem>) {
        for failed in &self.failed {
            match items
                .iter_mut()
                .find(|item| (item.kind, &item.name) == (failed.kind, &failed.name))
            {
                Some(item) => {
                    (item.status, item.reason) = (ItemStatus::Failed, failed.reason.clone())
                }
                None => items.push(failed.clone()),
            }
        }
    }

    /// The paths of the files that change.
    pub(crate) fn files(&self) -> Vec<&PathBuf> {
        let sights = self.ages.sights.as_ref().map(|_| &self.sights_path);
        self.edited.keys().chain(sights).collect()
    }
}
