//! The lock that a verb reads: an argument, or the value of `--lock`.

use crate::cli::shared::stale_lock::note_stale;
use crate::cli::shared::{CliError, Context};
use clap::Args;
use landfall_item::lockfile::{FILE_NAME, Lock};
use std::path::{Path, PathBuf};

/// The arguments that name a lock.
#[derive(Args)]
pub(crate) struct LockArgs {
    /// The lock [default: landfall.lock]
    #[arg(value_name = "LOCK")]
    argument: Option<PathBuf>,
    /// The lock, instead of the argument
    #[arg(long, value_name = "FILE", conflicts_with = "argument")]
    lock: Option<PathBuf>,
}

impl LockArgs {
    pub(crate) fn path(&self) -> &Path {
        self.named().unwrap_or(Path::new(FILE_NAME))
    }

    /// The path that was given without a flag.
    pub(crate) fn argument(&self) -> Option<&Path> {
        self.argument.as_deref()
    }

    /// The path that was given, if any.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.argument.as_deref().or(self.lock.as_deref())
    }

    /// Reads the lock, and prints a note if a manifest in its folder names more items.
    pub(crate) fn load(&self, context: &Context) -> Result<Lock, CliError> {
        let lock = context.read_lock(self.path())?;
        note_stale(self.path(), &lock, &*context.progress);
        Ok(lock)
    }
}
