//! What came of an update: versions that moved, what holds them back, what upstream says of the
//! rest.

use super::asker::{Wish, wishes};
use landfall_item::manifest::{FileOverrides, MergedManifest};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::report::{EntryKind, ItemStatus, Notice, NoticeKind, ReportItem};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A version that moved, or is held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct VersionMove {
    /// The variable, the image without its version, or the list.
    pub(crate) name: String,
    /// Where it stands, as `file:line:column`.
    #[serde(serialize_with = "shown")]
    pub(crate) at: SourceLocation,
    /// Its policy.
    pub(crate) policy: String,
    /// The version that stood there.
    pub(crate) from: String,
    /// The version that stands there now; none where nothing newer can be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The source of a package that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// The items that are new by it.
    pub(crate) items: Vec<String>,
    /// Newer versions that cannot be taken.
    pub(crate) held: Vec<HeldVersion>,
}

fn shown<S: Serializer>(at: &SourceLocation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// A newer version that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct HeldVersion {
    /// The version.
    pub(crate) version: String,
    /// What holds it back.
    pub(crate) why: String,
}

/// What upstream says of an item whose version did not move: it moved (another digest, or another
/// size of a file), or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamNotice {
    /// What kind of item it is.
    pub(crate) item: EntryKind,
    /// What upstream says.
    pub(crate) notice: Notice,
}

impl UpstreamNotice {
    /// The item's name.
    pub(crate) fn name(&self) -> &str {
        &self.notice.name
    }

    /// Whether upstream does not have it any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.notice.kind == NoticeKind::Gone
    }
}

/// What came of an update.
#[derive(Debug, Default)]
pub(crate) struct UpdateOutcome {
    /// Versions that moved or are held back, in the order of the manifests.
    pub(crate) moves: Vec<VersionMove>,
    /// What upstream says of the rest.
    pub(crate) noticed: Vec<UpstreamNotice>,
    /// One for each thing that could not be asked.
    pub(crate) failed: Vec<ReportItem>,
    /// The digest of each manifest and list as it was read.
    pub(crate) before: BTreeMap<PathBuf, Digest>,
    /// The texts of the files that change, whole.
    pub(crate) edited: FileOverrides,
    /// What the manifests want after it.
    pub(crate) wanted: MergedManifest,
    /// The items whose new digest is to be locked though their name stays.
    pub(crate) relock: BTreeSet<(EntryKind, String)>,
}

impl UpdateOutcome {
    /// Whether something is newer, moved or gone.
    pub(crate) fn has_news(&self) -> bool {
        !self.noticed.is_empty()
            || self
                .moves
                .iter()
                .any(|one| one.to.is_some() || !one.held.is_empty())
    }

    /// One for each thing that is wanted, and what could not be asked: for a report without a lock.
    pub(crate) fn items(&self) -> Vec<ReportItem> {
        let mut items: Vec<ReportItem> = wishes(&self.wanted)
            .into_iter()
            .map(|Wish { kind, name, .. }| {
                let gone = self
                    .noticed
                    .iter()
                    .any(|one| one.is_gone() && (one.item, one.name()) == (kind, &*name));
                let reason = gone.then(|| "upstream does not have it any more".to_owned());
                let status = if gone {
                    ItemStatus::Missing
                } else {
                    ItemStatus::Present
                };
                ReportItem {
                    kind,
                    name,
                    digest: None,
                    bytes: None,
                    packages: 0,
                    status,
                    reason,
                }
            })
            .collect();
        self.fail(&mut items);
        items
    }

    /// Puts what could not be asked among `items`.
    pub(crate) fn fail(&self, items: &mut Vec<ReportItem>) {
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

    /// The files that change.
    pub(crate) fn files(&self) -> Vec<&PathBuf> {
        self.edited.keys().collect()
    }
}
