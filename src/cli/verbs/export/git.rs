//! `landfall export git`: writes git repositories to a folder.

use super::folder::FolderExport;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::{Args, ValueEnum};
use landfall_model::report::EntryKind;
use landfall_serve::{GitExportFormat, export_git};
use std::sync::Arc;

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
            Box::new(move |lock, _, dir, dry_run, progress| {
                export_git(lock, &shared, dir, format, dry_run, limits, progress)
            }),
        )
    }
}
