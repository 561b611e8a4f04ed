//! Exports to a folder: the flags, and how the result is printed.

use crate::cli::shared::content_flags::ContentFlags;
use crate::cli::shared::context::run_blocking;
use crate::cli::shared::disk_space::{disk_space_for, report_disk_space};
use crate::cli::shared::failed_items::item_lines;
use crate::cli::shared::outcome::is_planned;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Args;
use landfall_content::BlobRead;
use landfall_item::lockfile::{Lock, losses};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem, RunReport, count_of};
use landfall_model::{human_size, sum_sizes};
use landfall_serve::ExportError;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the content of a lock to a folder, or in a dry run reports what it would write.
pub(crate) type ExportFunction = Box<
    dyn FnOnce(&Lock, &dyn BlobRead, &Path, bool, &dyn Progress) -> Result<RunReport, ExportError>
        + Send,
>;

/// The flags of an export to a folder.
#[derive(Args)]
pub(crate) struct FolderExport {
    #[command(flatten)]
    content: ContentFlags,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl FolderExport {
    /// Runs `export` for the entries whose kind is `wanted`.
    pub(crate) fn run(
        self,
        context: &Context,
        wanted: fn(EntryKind) -> bool,
        export: ExportFunction,
    ) -> Result<VerbOutcome, CliError> {
        let (lock, blobs) = self.open(context, wanted)?;
        self.write(context, wanted, lock, blobs, export)
    }

    /// Opens the lock, and the content of the entries whose kind is `wanted`.
    pub(crate) fn open(
        &self,
        context: &Context,
        wanted: fn(EntryKind) -> bool,
    ) -> Result<(Lock, Arc<dyn BlobRead>), CliError> {
        self.content.open(context, |entry| wanted(entry.kind))
    }

    /// Runs `export` for the content of `lock`.
    pub(crate) fn write(
        self,
        context: &Context,
        wanted: fn(EntryKind) -> bool,
        lock: Lock,
        blobs: Arc<dyn BlobRead>,
        export: ExportFunction,
    ) -> Result<VerbOutcome, CliError> {
        let progress = Arc::clone(&context.progress);
        context.run(async move {
            run_blocking("exporting", move || {
                let report = export(&lock, &*blobs, &self.out, self.dry_run, &*progress)?;
                let lost = losses(&lock).into_iter().filter(|lost| wanted(lost.kind));
                outcome(report, lost, &self.out, self.dry_run)
            })
            .await?
        })
    }
}

/// The outcome of an export to `out`. `lost` are the items that the lock or bundle lacks.
fn outcome(
    mut report: RunReport,
    lost: impl Iterator<Item = ReportItem>,
    out: &Path,
    dry_run: bool,
) -> Result<VerbOutcome, CliError> {
    let planned_count = report.totals().skipped;
    report.items.extend(lost);
    let mut text = String::new();
    let with_reason = report.items.iter().filter(|item| item.reason.is_some());
    let (planned, lost): (Vec<&ReportItem>, Vec<&ReportItem>) =
        with_reason.partition(|item| is_planned(item));
    for item in planned {
        let _ = writeln!(text, "{} would be written", item.name);
    }
    text += &item_lines(lost);
    let totals = report.totals();
    let written = if dry_run { planned_count } else { totals.done };
    let _ = writeln!(
        text,
        "{}: {} {}written ({}), {} unchanged",
        out.display(),
        count_of(written, "file"),
        if dry_run { "to be " } else { "" },
        human_size(report.bytes_transferred),
        totals.present
    );
    if dry_run {
        let planned = report
            .items
            .iter()
            .filter(|item| item.status == ItemStatus::Skipped);
        let needed = sum_sizes(planned.filter_map(|item| item.bytes));
        text += &report_disk_space(&mut report, &disk_space_for(out, needed)?);
        return Ok(VerbOutcome::of_dry_run(report, text));
    }
    Ok(VerbOutcome::of(report, text))
}
