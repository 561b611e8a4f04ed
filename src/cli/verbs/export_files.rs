//! `landfall export files`.

use crate::cli::shared::exported_files::FolderExport;
use crate::cli::shared::{Context, Failure, Outcome};
use crate::item::has_files;
use crate::serve::export_files;
use clap::Args;

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
