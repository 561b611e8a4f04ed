//! The result of a check.

use serde::Serialize;
use std::fmt;

/// The result of a check. The variants are in the order from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckStatus {
    Ok,
    /// A hint: landfall works, but something may be unintended.
    Note,
    /// The check failed.
    No,
}

impl fmt::Display for CheckStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CheckStatus::Ok => "ok",
            CheckStatus::Note => "note",
            CheckStatus::No => "NO",
        })
    }
}
