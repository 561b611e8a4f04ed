//! What came of a push.

use super::problem::Problem;
use super::receipt::Receipt;
use landfall_model::Digest;
use landfall_model::report::ReportItem;
use serde::Serialize;

/// What came of a push.
#[derive(Debug)]
pub struct Pushed {
    /// One item for each entry of the lock, and its losses.
    pub items: Vec<ReportItem>,
    /// What is in the way. Where one of them [stops all](Problem::stops_all), nothing was sent.
    pub problems: Vec<Problem>,
    /// Tags that stood at another digest, and were replaced.
    pub moved: Vec<Moved>,
    /// Indexes that were replaced by their trimmed form.
    pub trimmed: Vec<Replaced>,
    /// Why the registry's list of what was delivered lacks this, where it does.
    pub unlisted: Option<String>,
    /// Bytes that were to be sent at the most.
    pub needed_bytes: u64,
    /// What stands there now.
    pub receipt: Receipt,
}

/// An index that stands at the far side in its trimmed form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// The name in the lock.
    pub name: String,
    /// The digest of the lock.
    pub from: Digest,
    /// The digest of the trimmed index.
    pub to: Digest,
}

/// A tag that stood at another digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// `repository:tag` at the registry.
    pub at: String,
    /// The digest that it stood at.
    pub from: Digest,
    /// The digest of the lock.
    pub to: Digest,
}
