//! The lock of a verb, named by its place or by `--lock`.

use crate::cli::shared::stale_lock::note_stale;
use crate::cli::shared::{CliError, Context, input_file};
use clap::Args;
use landfall_item::lockfile::{FILE_NAME, Lock};
use std::path::{Path, PathBuf};

/// The arguments that name a lock.
#[derive(Args)]
pub(crate) struct LockArgs {
    /// The lock [default: landfall.lock]
    #[arg(value_name = "LOCK")]
    place: Option<PathBuf>,
    /// The lock, in place of the argument
    #[arg(long, value_name = "FILE", conflicts_with = "place")]
    lock: Option<PathBuf>,
}

impl LockArgs {
    /// The path of the lock.
    pub(crate) fn path(&self) -> &Path {
        self.named().unwrap_or(Path::new(FILE_NAME))
    }

    /// The path that was given without a flag.
    pub(crate) fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// The path that was given.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.place.as_deref().or(self.lock.as_deref())
    }

    /// Reads the lock, and notes if a manifest beside it names more.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn load(&self, context: &Context) -> Result<Lock, CliError> {
        let lock = input_file::lock(self.path())?;
        note_stale(self.path(), &lock, &*context.progress);
        Ok(lock)
    }
}
