//! An item of a report, with its kind and its outcome.

use crate::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a lock entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A container image or another artifact of a registry.
    Image,
    /// A plain file that was downloaded from a URL.
    File,
    /// A checksum file, signature or certificate of a plain file.
    Sidecar,
    /// A signature, attestation or other referrer.
    Referrer,
    /// A Helm chart of a chart repository or a registry.
    Chart,
    /// A set of operating-system packages; in an audit, one package.
    Package,
    /// A git repository.
    Git,
    /// A provider of OpenTofu or Terraform.
    Provider,
    /// A variable of a manifest whose versions could not be looked up. It is not a lock entry.
    Variable,
    /// A kind that only tests have.
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
            EntryKind::Git => "git",
            EntryKind::Provider => "provider",
            EntryKind::Variable => "variable",
            #[cfg(any(test, feature = "testkit"))]
            EntryKind::Note => "note",
        })
    }
}

/// The outcome of a command for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemStatus {
    /// The command transferred or changed it.
    Done,
    /// It was present already, so nothing was transferred.
    Present,
    /// It was skipped on purpose: by a dry run, or because the manifest accepts its loss.
    Skipped,
    /// It is missing: upstream, in the bundle, in the lock or at its destination.
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

/// An item of a report: a lock entry, or a name that the lock lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportItem {
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The name in the lock.
    pub name: String,
    /// The digest, if the command knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The size in bytes with all blobs and manifests, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The number of packages in a package set; 0 if unknown, and for other kinds. Only text for
    /// people counts packages; the JSON document counts items.
    #[serde(skip)]
    pub packages: usize,
    /// The outcome of the command for the item.
    pub status: ItemStatus,
    /// The reason for the outcome, if there is something to explain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
