//! `landfall export files`: writes the files for a web server.

use super::folder::FolderExport;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Args;
use landfall_item::has_files;
use landfall_serve::export_files;

/// Write the files to a folder as HOST/PATH, for a web server
#[derive(Args)]
pub(crate) struct ExportFiles {
    #[command(flatten)]
    export: FolderExport,
}

impl ExportFiles {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.export.run(context, has_files, Box::new(export_files))
    }
}
