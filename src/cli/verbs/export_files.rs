//! `landfall export files`.

use crate::cli::shared::exported_from::ExportedFrom;
use crate::cli::shared::room::{room_of, tell_room};
use crate::cli::shared::summary::item_line;
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::item::has_files;
use crate::lockfile::losses;
use crate::model::human_size;
use crate::report::Status;
use crate::serve::export_files;
use clap::Args;
use std::fmt::Write as _;
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
                let mut report = export_files(&lock, &*blobs, &self.out, self.dry_run, &*progress)?;
                report.items.extend(losses(&lock).into_iter().filter(|lost| has_files(lost.kind)));
                let mut text = String::new();
                for item in report.items.iter().filter(|item| item.reason.is_some()) {
                    let _ = match item.status {
                        Status::Skipped if item.digest.is_some() => {
                            writeln!(text, "{} would be written", item.name)
                        }
                        _ => writeln!(text, "{}", item_line(item)),
                    };
                }
                let (totals, out) = (report.totals(), self.out.display());
                let written = if self.dry_run { totals.skipped } else { totals.done };
                let _ = writeln!(
                    text,
                    "{out}: {written} files {}written ({}), {} there already",
                    if self.dry_run { "to be " } else { "" },
                    human_size(report.bytes_transferred),
                    totals.present
                );
                if self.dry_run {
                    let planned = report.items.iter().filter(|item| item.status == Status::Skipped);
                    let needed = planned.filter_map(|item| item.bytes).sum();
                    text += &tell_room(&mut report, &room_of(&self.out, needed)?);
                }
                Ok(Outcome::of(report, text))
            });
            work.await.map_err(|error| Failure::new(Exit::Failed, format!("exporting stopped: {error}")))?
        })
    }
}
