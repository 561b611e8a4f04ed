//! The content of a report page.

use crate::Digest;
use crate::report::{EntryKind, ErrorInfo, RunReport, RunStatus};

/// The content of a report page: the report of a run or of a bundle, with the content of its items.
pub struct ReportPage {
    /// The command that was run.
    pub command: String,
    /// The name of the bundle if the page is about a bundle instead of a command.
    pub bundle: Option<String>,
    /// How the run ended, as in `status` of the JSON document.
    pub status: RunStatus,
    /// The error that ended the run.
    pub error: Option<ErrorInfo>,
    /// The items, hosts and lists that the page shows.
    pub report: RunReport,
    /// The content of the items.
    pub contents: Vec<ItemContent>,
    /// Labelled values about the whole run or bundle, such as digests and signatures.
    pub facts: Vec<(String, String)>,
    /// The phases of the run, in order.
    pub phases: Vec<RunPhase>,
    /// The duration of the run in seconds, or `None` if no command was run.
    pub seconds: Option<f64>,
}

/// The content of one item.
#[derive(Debug, Clone)]
pub struct ItemContent {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name of the item in the lock.
    pub name: String,
    /// The group of the item in the treemap: its host and, for an image, the namespace.
    pub group: String,
    /// All blobs and manifests of the item, each once, with their sizes in bytes.
    pub blobs: Vec<(Digest, u64)>,
    /// The platforms of an image.
    pub platforms: Vec<String>,
    /// The kinds of artifacts that refer to the item, each with its count.
    pub attached: Vec<(String, usize)>,
    /// The verified signers of the item.
    pub signed_by: Vec<String>,
    /// The licences that the image declares.
    pub licences: Option<String>,
    /// The creation time that the image declares.
    pub created: Option<String>,
    /// The packages of a package set.
    pub packages: Vec<PackageRow>,
}

/// A package of a package set.
#[derive(Debug, Clone)]
pub struct PackageRow {
    /// The name, without version and architecture.
    pub name: String,
    /// The version, as its repository writes it.
    pub version: String,
    /// The architecture, in the words of the distribution.
    pub arch: String,
    /// The size of the package file in bytes.
    pub size: u64,
}

/// One phase of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPhase {
    /// The name of the phase, such as `pull`.
    pub name: String,
    /// The number of items in the phase.
    pub items: u64,
    /// The number of bytes that the phase expected; 0 if unknown.
    pub bytes: u64,
    /// How long the phase took, in seconds.
    pub seconds: f64,
}
