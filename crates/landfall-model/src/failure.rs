//! [`Failure`]: an error with its exit code, side, item and help.

use crate::exit::{Exit, TransferSide};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// An error that no code distinguishes from others: it ends a command or fails an item. The place
/// that fails assigns the exit code, because it knows whose mistake the failure is.
#[derive(Clone, PartialEq, Eq)]
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

impl Deref for Failure {
    type Target = FailureParts;

    fn deref(&self) -> &FailureParts {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut FailureParts {
        &mut self.0
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
