//! `landfall pull`.

use super::lock::not_there;
use super::{Context, Failure, Outcome};
use crate::lock::Lock;
use crate::model::human_size;
use crate::pull::{count_kinds, pull};
use crate::report::Status;
use crate::source::Upstreams;
use crate::store::Disk;
use clap::Args;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Fetch everything that the lock names into the store
#[derive(Args)]
pub(super) struct Pull {
    /// The lock
    #[arg(long, value_name = "FILE", default_value = "landfall.lock")]
    lock: PathBuf,
    /// Hash everything in the store again, whatever its journal says
    #[arg(long)]
    rehash: bool,
}

impl Pull {
    pub(super) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let lock = Lock::load(&self.lock)?;
        let dir = context.store_dir()?;
        context.run(async {
            let sessions = context.sessions()?;
            let disk = Disk::open(&dir)?;
            let source = Arc::new(Upstreams(sessions.clone()));
            let progress = context.progress.clone();
            let items = pull(&lock, source, &disk, context.limits.jobs, self.rehash, progress).await?;
            let report = context.report(&sessions, items);
            let mut text = String::new();
            for item in
                report.items.iter().filter(|item| !matches!(item.status, Status::Done | Status::Present))
            {
                let _ = writeln!(text, "{}", super::lock::lost(item));
            }
            let totals = report.totals();
            let _ = writeln!(
                text,
                "pulled {} into {}: {} new, {} there{}, {} in {} requests",
                count_kinds(&report.items),
                dir.display(),
                totals.done,
                totals.present,
                not_there(&totals),
                human_size(totals.bytes_transferred),
                totals.requests
            );
            Ok(Outcome::of(report, text))
        })
    }
}
