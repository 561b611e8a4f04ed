//! `landfall push`.

use super::delivery::Delivery;
use super::{Context, Failure, Outcome, carried};
use crate::lock::Lock;
use crate::store::{Blobs, Disk, Local};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Deliver a bundle, or what the store holds of a lock, to a registry
#[derive(Args)]
pub(super) struct Push {
    /// The bundle; without it the store is pushed
    bundle: Option<PathBuf>,
    /// The lock, where the store is pushed [default: landfall.lock]
    #[arg(long, value_name = "FILE", conflicts_with = "bundle")]
    lock: Option<PathBuf>,
    /// Take a bundle that says of itself that items are missing
    #[arg(long)]
    allow_partial: bool,
    #[command(flatten)]
    delivery: Delivery,
}

impl Push {
    pub(super) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let mapping = self.delivery.mapping(context)?;
        let (lock, blobs): (Lock, Arc<dyn Blobs>) = match &self.bundle {
            Some(path) => {
                let bundle = carried::open(context, path, self.allow_partial)?;
                (bundle.held()?, Arc::new(bundle))
            }
            None => {
                let path = self.lock.as_deref().unwrap_or(Path::new("landfall.lock"));
                (Lock::load(path)?, Arc::new(Disk::open(&context.store_dir()?)?))
            }
        };
        let source = Arc::new(Local(blobs));
        context.run(async {
            let sessions = context.sessions()?;
            self.delivery.run(context, &sessions, &lock, &mapping, source).await
        })
    }
}
