//! How a command ended: its exit code, its status, the side that failed, and [`Failure`], an error
//! with all of these and its help.

use derive_more::Display;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Display)]
#[serde(rename_all = "lowercase")]
#[display(rename_all = "lowercase")]
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

/// The side of a transfer on which an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "lowercase")]
#[display(rename_all = "lowercase")]
pub enum TransferSide {
    /// The side that content is read from.
    Source,
    /// The side that content is written to.
    Destination,
    /// A file or flag of the user.
    Input,
}

/// An error that no code distinguishes from others: it ends a command or fails an item. The place
/// that fails assigns the exit code, because it knows whose mistake the failure is.
#[derive(Clone, PartialEq, Eq, Display, derive_more::Debug)]
#[display("{}", self.message)]
#[debug("{_0:?}")]
#[derive(derive_more::Deref, derive_more::DerefMut)]
#[deref(forward)]
#[deref_mut(forward)]
pub struct Failure(Box<FailureParts>);

/// The parts of a [`Failure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureParts {
    /// The exit code of a command that ends with this failure.
    pub exit: Exit,
    /// The side that failed, if there are sides.
    pub side: Option<TransferSide>,
    /// The item that failed, if exactly one item did.
    pub item: Option<String>,
    /// What failed and why, without the help.
    pub message: String,
    /// The fix.
    pub help: Option<String>,
    /// Whether the report has the status `refused`, whatever the exit code is.
    pub refuses: bool,
}

impl Failure {
    /// A failure without side, item and help.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure(Box::new(FailureParts {
            exit,
            side: None,
            item: None,
            message: message.into(),
            help: None,
            refuses: exit == Exit::Refused,
        }))
    }

    /// Exit 1: the command cannot do what was requested.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Failed, message)
    }

    /// Exit 2: an argument or an input file is wrong.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message).on(TransferSide::Input)
    }

    /// Exit 4: a check failed.
    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Refused, message)
    }

    /// Exit 2: the input file at `path` cannot be read.
    pub fn read(path: impl AsRef<Path>, why: impl fmt::Display) -> Failure {
        let path = path.as_ref().display();
        Failure::usage(format!("cannot read {path}: {why}"))
    }

    /// Exit 1: the file at `path` cannot be written.
    pub fn write(path: impl AsRef<Path>, why: impl fmt::Display) -> Failure {
        let path = path.as_ref().display();
        Failure::failed(format!("cannot write {path}: {why}")).on(TransferSide::Destination)
    }

    /// Sets the side that failed.
    #[must_use]
    pub fn on(mut self, side: TransferSide) -> Failure {
        self.side = Some(side);
        self
    }

    /// Sets the item that failed.
    #[must_use]
    pub fn about(mut self, item: impl Into<String>) -> Failure {
        self.item = Some(item.into());
        self
    }

    /// Sets the fix.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }
}

impl std::error::Error for Failure {}
