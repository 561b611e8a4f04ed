//! One item of a report: its kind, and what became of it.

use crate::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A container image.
    Image,
    /// A plain file.
    File,
    /// A checksum file beside a plain file.
    Sidecar,
    /// A signature, attestation or other referrer.
    Referrer,
    /// A Helm chart.
    Chart,
    /// An operating-system package.
    Package,
    /// A note, which tests write.
    #[cfg(any(test, feature = "testkit"))]
    Note,
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EntryKind::Image => "image",
            EntryKind::File => "file",
            EntryKind::Sidecar => "sidecar",
            EntryKind::Referrer => "referrer",
            EntryKind::Chart => "chart",
            EntryKind::Package => "package",
            #[cfg(any(test, feature = "testkit"))]
            EntryKind::Note => "note",
        })
    }
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemStatus {
    /// The command did something for it.
    Done,
    /// It was there already.
    Present,
    /// Left out on purpose: by a dry run, or as a loss that the manifest accepts.
    Skipped,
    /// It is absent where it should be.
    Missing,
    /// The command failed for it.
    Failed,
}

impl ItemStatus {
    /// The value in the JSON document.
    pub fn word(self) -> &'static str {
        match self {
            ItemStatus::Done => "done",
            ItemStatus::Present => "present",
            ItemStatus::Skipped => "skipped",
            ItemStatus::Missing => "missing",
            ItemStatus::Failed => "failed",
        }
    }
}

/// One item of a report. An item is a lock entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportItem {
    /// Its kind.
    pub kind: EntryKind,
    /// Its name in the lock.
    pub name: String,
    /// Its digest, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Its size in bytes with all its parts, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The number of packages in a set of packages; 0 if it is unknown, and for every other item.
    /// Texts for people count them; the JSON document counts items.
    #[serde(skip)]
    pub packages: usize,
    /// What became of it.
    pub status: ItemStatus,
    /// The reason, where there is one to give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
