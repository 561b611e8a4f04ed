//! `landfall export files`.

use crate::cli::shared::exported_files::told;
use crate::cli::shared::exported_from::ExportedFrom;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::item::has_files;
use crate::lockfile::losses;
use crate::serve::export_files;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

/// Write the files as a folder HOST/PATH, for a web server that is there already
#[derive(Args)]
pub(crate) struct Files {
    #[command(flatten)]
    carried: ExportedFrom,
    /// The folder
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Files {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let (lock, blobs) = self.carried.open(context, |entry| has_files(entry.kind))?;
        let progress = Arc::clone(&context.progress);
        context.run(async move {
            let work = tokio::task::spawn_blocking(move || -> Result<Outcome, Failure> {
                let report = export_files(&lock, &*blobs, &self.out, self.dry_run, &*progress)?;
                let lost = losses(&lock).into_iter().filter(|lost| has_files(lost.kind));
                told(report, lost, &self.out, self.dry_run)
            });
            work.await.map_err(|error| Failure::new(Exit::Failed, format!("exporting stopped: {error}")))?
        })
    }
}
