//! `landfall export charts`.

use crate::cli::shared::exported_files::told;
use crate::cli::shared::exported_from::ExportedFrom;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::lockfile::losses;
use crate::report::Kind;
use crate::serve::export_charts;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

/// Write the charts as a folder with an index.yaml, which any web server offers to helm
#[derive(Args)]
pub(crate) struct Charts {
    #[command(flatten)]
    carried: ExportedFrom,
    /// The folder
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Charts {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let (lock, blobs) = self.carried.open(context, |entry| entry.kind == Kind::Chart)?;
        let progress = Arc::clone(&context.progress);
        context.run(async move {
            let work = tokio::task::spawn_blocking(move || -> Result<Outcome, Failure> {
                let report = export_charts(&lock, &*blobs, &self.out, self.dry_run, &*progress)?;
                let lost = losses(&lock).into_iter().filter(|lost| lost.kind == Kind::Chart);
                told(report, lost, &self.out, self.dry_run)
            });
            work.await.map_err(|error| Failure::new(Exit::Failed, format!("exporting stopped: {error}")))?
        })
    }
}
