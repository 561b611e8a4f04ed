//! `landfall export files`.

use crate::cli::shared::exported_files::FolderExport;
use crate::cli::shared::{Context, Failure, Outcome};
use clap::Args;
use landfall_item::has_files;
use landfall_serve::export_files;

/// Write the files as a folder HOST/PATH, for a web server that is there already
#[derive(Args)]
pub(crate) struct Files {
    #[command(flatten)]
    export: FolderExport,
}

impl Files {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        self.export.run(context, has_files, export_files)
    }
}
