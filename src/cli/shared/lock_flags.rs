//! Which lock says what is known: shared by the verbs that compare references with it.

use crate::cli::shared::open_bundle::{self, Demands};
use crate::cli::shared::{Context, Failure, input_file};
use crate::lockfile::{FILE_NAME, Lock};
use clap::Args;
use std::path::{Path, PathBuf};

/// Flags that name a lock.
#[derive(Args)]
pub(crate) struct Locked {
    /// The lock that says which references are known [default: landfall.lock]
    #[arg(long, value_name = "FILE", conflicts_with = "bundle")]
    lock: Option<PathBuf>,
    /// The bundle whose lock says it
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Take a bundle that says of itself that items are missing; references to these are left
    #[arg(long)]
    allow_partial: bool,
}

impl Locked {
    /// The lock that decides which references are known.
    ///
    /// # Errors
    /// When none is named and there is no landfall.lock, or when it cannot be read.
    pub(crate) fn load(&self, context: &Context) -> Result<Lock, Failure> {
        match (&self.lock, &self.bundle) {
            (Some(path), _) => Ok(input_file::lock(path)?),
            (None, Some(bundle)) => {
                let demands = Demands { allow_partial: self.allow_partial, ..Demands::default() };
                Ok(open_bundle::open(context, bundle, &demands)?.bundle.held()?)
            }
            (None, None) if Path::new(FILE_NAME).exists() => Ok(input_file::lock(Path::new(FILE_NAME))?),
            (None, None) => Err(Failure::usage(
                "which references are known? name a lock with --lock FILE, or a bundle with --bundle BUNDLE",
            )),
        }
    }
}
