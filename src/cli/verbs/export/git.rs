//! `landfall export git`: writes bare git repositories.

use super::folder::FolderExport;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Args;
use landfall_model::report::EntryKind;
use landfall_serve::export_git;
use std::sync::Arc;

/// Write git repositories to a folder, as bare repositories HOST/PATH.git
///
/// git reads them as they are, and any web server can serve them.
#[derive(Args)]
pub(crate) struct ExportGit {
    #[command(flatten)]
    export: FolderExport,
}

fn is_repository(kind: EntryKind) -> bool {
    kind == EntryKind::Git
}

impl ExportGit {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let (lock, blobs) = self.export.open(context, is_repository)?;
        let limits = context.limits;
        let shared = Arc::clone(&blobs);
        self.export.write(
            context,
            is_repository,
            lock,
            blobs,
            Box::new(move |lock, _, dir, dry_run, progress| {
                export_git(lock, &shared, dir, dry_run, limits, progress)
            }),
        )
    }
}
