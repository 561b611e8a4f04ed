//! Which lock says what is known: shared by the verbs that compare references with it.

use super::carried::{self, Demands};
use super::{Context, Failure};
use crate::lock::{FILE_NAME, Lock};
use clap::Args;
use std::path::{Path, PathBuf};

/// Flags that name a lock.
#[derive(Args)]
pub(super) struct Locked {
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
    pub(super) fn load(&self, context: &Context) -> Result<Lock, Failure> {
        match (&self.lock, &self.bundle) {
            (Some(path), _) => Ok(Lock::load(path)?),
            (None, Some(bundle)) => {
                let demands = Demands { allow_partial: self.allow_partial, ..Demands::default() };
                Ok(carried::open(context, bundle, &demands)?.bundle.held()?)
            }
            (None, None) if Path::new(FILE_NAME).exists() => Ok(Lock::load(Path::new(FILE_NAME))?),
            (None, None) => Err(Failure::usage(
                "which references are known? name a lock with --lock FILE, or a bundle with --bundle BUNDLE",
            )),
        }
    }
}
