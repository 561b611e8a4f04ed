//! `landfall push`.

use super::delivery::Delivery;
use super::{Context, Failure, Outcome};
use crate::lock::Lock;
use crate::store::{Disk, Local};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

/// Deliver a bundle, or what the store holds of a lock, to a registry
#[derive(Args)]
pub(super) struct Push {
    /// The lock, where the store is pushed
    #[arg(long, value_name = "FILE", default_value = "landfall.lock")]
    lock: PathBuf,
    #[command(flatten)]
    delivery: Delivery,
}

impl Push {
    pub(super) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let mapping = self.delivery.mapping(context)?;
        let lock = Lock::load(&self.lock)?;
        let source = Arc::new(Local(Arc::new(Disk::open(&context.store_dir()?)?)));
        context.run(async {
            let sessions = context.sessions()?;
            self.delivery.run(context, &sessions, &lock, &mapping, source).await
        })
    }
}
