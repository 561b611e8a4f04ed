//! `landfall push`.

use super::delivery::Delivery;
use super::together::{Together, store};
use super::{Context, Failure, Outcome, carried};
use crate::lock::Lock;
use crate::push::LeftOut;
use crate::source;
use crate::store::{Blobs, Disk, Local};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Deliver a bundle, or what the store holds of a lock, to a registry
#[derive(Args)]
pub(super) struct Push {
    /// The bundle; without it the store is pushed
    bundle: Option<PathBuf>,
    /// What a delta was packed against, or as much of it as there is: bundles, and receipts of pushes
    #[arg(value_name = "BASE")]
    bases: Vec<PathBuf>,
    /// Take what a delta leaves out from the store too
    #[arg(long, requires = "bundle")]
    with_store: bool,
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
        let (lock, blobs, left_out): (Lock, Arc<dyn Blobs>, LeftOut) = match &self.bundle {
            Some(path) => {
                let bundle = carried::open(context, path, self.allow_partial)?;
                let together = Together::new(bundle, &self.bases, store(context, self.with_store)?)?;
                let lock = together.bundle.held()?;
                let left_out = together.left_out(&source::entries(&lock))?;
                (lock, together.blobs, left_out)
            }
            None => {
                let path = self.lock.as_deref().unwrap_or(Path::new("landfall.lock"));
                (Lock::load(path)?, Arc::new(Disk::open(&context.store_dir()?)?), LeftOut::default())
            }
        };
        let source = Arc::new(Local(blobs));
        context.run(async {
            let sessions = context.sessions()?;
            self.delivery.run(context, &sessions, &lock, &mapping, (source, &left_out)).await
        })
    }
}
