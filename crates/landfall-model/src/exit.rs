//! How a command ended: its exit code, its status, and the side that failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The exit codes, as documented in the help and in `docs/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything succeeded.
    Done = 0,
    /// The command failed, and nothing succeeded.
    Failed = 1,
    /// Wrong use, or an input file that is missing or wrong.
    Usage = 2,
    /// Something succeeded, and something failed or is missing.
    Partial = 3,
    /// A check failed: drift, or a bundle that is damaged, unsigned or not approved.
    Refused = 4,
    /// SIGINT: 128 plus the number of the signal, as shells report it.
    Interrupted = 130,
}

impl Exit {
    /// The member `status` of the report.
    pub fn status(self) -> RunStatus {
        match self {
            Exit::Done => RunStatus::Done,
            Exit::Partial => RunStatus::Partial,
            Exit::Refused => RunStatus::Refused,
            Exit::Failed | Exit::Usage | Exit::Interrupted => RunStatus::Failed,
        }
    }
}

/// The outcome of a run, as in `status` of the JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Every item succeeded (exit 0).
    Done,
    /// Some items failed or are missing (exit 3).
    Partial,
    /// Nothing succeeded, or the input is wrong (exit 1 or 2).
    Failed,
    /// A check failed (exit 4), or nothing was written because something is missing (exit 3).
    Refused,
}

impl RunStatus {
    /// The value in the JSON document.
    pub fn word(self) -> &'static str {
        match self {
            RunStatus::Done => "done",
            RunStatus::Partial => "partial",
            RunStatus::Failed => "failed",
            RunStatus::Refused => "refused",
        }
    }
}

/// The side of a transfer on which an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransferSide {
    /// The side that content is read from.
    Source,
    /// The side that content is written to.
    Destination,
    /// A file or flag of the user.
    Input,
}

impl fmt::Display for TransferSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransferSide::Source => "source",
            TransferSide::Destination => "destination",
            TransferSide::Input => "input",
        })
    }
}
