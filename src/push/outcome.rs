//! The outcome of a push.

use super::problem::Problem;
use super::receipt::Receipt;
use landfall_model::Digest;
use landfall_model::report::ReportItem;
use serde::Serialize;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// The name of the item in the lock.
    pub name: String,
    /// The digest in the lock.
    pub from: Digest,
    /// The digest of the trimmed index.
    pub to: Digest,
}

/// A tag that pointed to another digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// `repository:tag` at the registry.
    pub at: String,
    /// The digest that the tag pointed to before the push.
    pub from: Digest,
    /// The digest that the tag points to after the push.
    pub to: Digest,
}
