//! Exports to a folder for a web server: files, charts, git repositories, providers and packages.

use crate::cli::shared::bundle_flags::ContentFlags;
use crate::cli::shared::bundle_report::{disk_space_for, report_disk_space};
use crate::cli::shared::context::run_blocking;
use crate::cli::shared::failed_items::item_lines;
use crate::cli::shared::finish::is_planned;
use crate::cli::shared::output_file::{ReplaceFlag, written_folder};
use crate::cli::shared::package_changes::PackagesKey;
use crate::cli::shared::{CliError, Context, VerbOutcome, VerbReport};
use clap::{Args, ValueEnum};
use landfall_content::BlobRead;
use landfall_item::lockfile::{Lock, losses};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem, RunReport, count_of};
use landfall_model::{Failure, human_size, sum_sizes};
use landfall_serve::{ExportMode, GitExportFormat, export_git, export_packages};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the content of a lock to a folder, or in a dry run reports what it would write.
pub(crate) type ExportFunction = Box<
    dyn FnOnce(&Lock, &dyn BlobRead, &Path, ExportMode, &dyn Progress) -> Result<RunReport, Failure>
        + Send,
>;

// a doc comment would replace those of the subcommands
#[derive(Args)]
pub(crate) struct FolderExport {
    #[command(flatten)]
    content: ContentFlags,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR", value_parser = written_folder())]
    out: PathBuf,
    #[command(flatten)]
    replace: ReplaceFlag,
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
                let mode = ExportMode {
                    dry_run: self.dry_run,
                    replaces: self.replace.replaces,
                };
                let report = export(&lock, &*blobs, &self.out, mode, &*progress)?;
                let lost = losses(&lock).into_iter().filter(|lost| wanted(lost.kind));
                outcome(report.into(), lost, &self.out, self.dry_run)
            })
            .await?
        })
    }
}

/// The outcome of an export to `out`. `lost` are the items that the lock or bundle lacks.
fn outcome(
    mut report: VerbReport,
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
    if report.items.is_empty() {
        text += "note: the lock contains nothing of this kind; `landfall ls` lists its content\n";
    }
    if dry_run {
        let planned = report
            .items
            .iter()
            .filter(|item| item.status == ItemStatus::Skipped);
        let needed = sum_sizes(planned.filter_map(|item| item.bytes));
        text += &report_disk_space(&mut report, &disk_space_for(out, needed)?);
    }
    Ok(VerbOutcome::of_run(dry_run, report, text))
}

/// Write git repositories to a folder, as bare repositories HOST/PATH.git
///
/// git reads them as they are, and any web server can serve them. With --format bundle, each
/// repository is one file HOST/PATH.bundle, from which git can clone and fetch.
#[derive(Args)]
pub(crate) struct ExportGit {
    #[command(flatten)]
    export: FolderExport,
    /// The form of each repository
    #[arg(long, value_enum, default_value_t = RepositoryFormat::Bare)]
    format: RepositoryFormat,
}

/// The form of each repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RepositoryFormat {
    /// A bare repository, with its large files
    Bare,
    /// A git bundle, as `git bundle create` writes it
    Bundle,
}

fn is_repository(kind: EntryKind) -> bool {
    kind == EntryKind::Git
}

impl ExportGit {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let (lock, blobs) = self.export.open(context, is_repository)?;
        let limits = context.limits;
        let format = match self.format {
            RepositoryFormat::Bare => GitExportFormat::Bare,
            RepositoryFormat::Bundle => GitExportFormat::Bundle,
        };
        let shared = Arc::clone(&blobs);
        self.export.write(
            context,
            is_repository,
            lock,
            blobs,
            Box::new(move |lock, _, dir, mode, progress| {
                export_git(lock, &shared, dir, format, mode, limits, progress)
            }),
        )
    }
}

#[derive(Args)]
pub(crate) struct ExportPackages {
    #[command(flatten)]
    export: FolderExport,
    #[command(flatten)]
    key: PackagesKey,
}

fn is_package(kind: EntryKind) -> bool {
    kind == EntryKind::Package
}

impl ExportPackages {
    /// Writes the repositories of `system`, `apt:` or `yum:`.
    pub(crate) fn run(
        self,
        context: &Context,
        system: &'static str,
    ) -> Result<VerbOutcome, CliError> {
        let (lock, blobs) = self.export.open(context, is_package)?;
        let sets = lock
            .packages
            .iter()
            .filter(|set| set.name.starts_with(system));
        let made = self
            .key
            .sign_metadata(sets.map(|set| (set, &*blobs)), context)?
            .ok_or_else(|| {
                CliError::usage(
                    "the lock has packages with `index: trimmed`, whose metadata must be signed",
                )
                .with_help("name the OpenPGP key of the site with --packages-key FILE")
            })?;
        self.export.write(
            context,
            is_package,
            lock,
            blobs,
            Box::new(move |lock, blobs, dir, mode, progress| {
                export_packages(system, lock, &made, blobs, dir, mode, progress)
            }),
        )
    }
}
