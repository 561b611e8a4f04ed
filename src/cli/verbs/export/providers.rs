//! `landfall export providers`: writes a mirror of providers.

use super::folder::FolderExport;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Args;
use landfall_model::report::EntryKind;
use landfall_serve::export_providers;

/// Write providers of OpenTofu and Terraform to a folder, as a mirror
///
/// The folder is a filesystem mirror, and any https server can serve it as a network mirror.
#[derive(Args)]
pub(crate) struct ExportProviders {
    #[command(flatten)]
    export: FolderExport,
}

impl ExportProviders {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.export.run(
            context,
            |kind| kind == EntryKind::Provider,
            Box::new(export_providers),
        )
    }
}
