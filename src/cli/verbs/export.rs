//! `landfall export`: what is carried, in forms that other tools use.

use crate::cli::shared::bases::{Together, store};
use crate::cli::shared::open_bundle::{self, Demands};
use crate::cli::shared::summary::item_line;
use crate::cli::shared::{Context, Exit, Failure, Outcome, input_file};
use crate::content::BlobRead;
use crate::item::has_files;
use crate::lockfile::losses;
use crate::lockfile::{FILE_NAME, Lock};
use crate::model::human_size;
use crate::report::Status;
use crate::serve::export_files;
use crate::store::Disk;
use clap::{Args, Subcommand};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Write what is carried in a form that other tools use
#[derive(Args)]
pub(crate) struct Export {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Files(Files),
}

/// Write the files as a folder HOST/PATH, for a web server that is there already
#[derive(Args)]
struct Files {
    /// The folder
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// The lock, where the files come from the store
    #[arg(long, value_name = "FILE", default_value = FILE_NAME, conflicts_with = "bundle")]
    lock: PathBuf,
    /// The bundle that the files come from
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Take a bundle that says of itself that items are missing
    #[arg(long, requires = "bundle")]
    allow_partial: bool,
    /// What a delta was packed against (may be repeated)
    #[arg(long, value_name = "BUNDLE", requires = "bundle")]
    base: Vec<PathBuf>,
    /// Take what a delta leaves out from the store too
    #[arg(long, requires = "bundle")]
    with_store: bool,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Export {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let What::Files(files) = self.what;
        files.run(context)
    }
}

impl Files {
    fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let (lock, blobs): (Lock, Arc<dyn BlobRead>) = match &self.bundle {
            Some(path) => {
                let demands = Demands { allow_partial: self.allow_partial, ..Demands::default() };
                let bundle = open_bundle::open(context, path, &demands)?.bundle;
                let together = Together::new(bundle, &self.base, store(context, self.with_store)?, false)?;
                let lock = together.bundle.held()?;
                together.whole(lock.entries().iter().filter(|entry| has_files(entry.kind)))?;
                (lock, together.blobs)
            }
            None => (input_file::lock(&self.lock)?, Arc::new(Disk::open(&context.store_dir()?)?)),
        };
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
                Ok(Outcome::of(report, text))
            });
            work.await.map_err(|error| Failure::new(Exit::Failed, format!("exporting stopped: {error}")))?
        })
    }
}
