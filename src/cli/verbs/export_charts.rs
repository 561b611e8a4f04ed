//! `landfall export charts`.

use crate::cli::shared::exported_files::FolderExport;
use crate::cli::shared::{Context, Failure, Outcome};
use clap::Args;
use landfall_model::report::EntryKind;
use landfall_serve::export_charts;

/// Write the charts as a folder with an index.yaml, which any web server offers to helm
#[derive(Args)]
pub(crate) struct Charts {
    #[command(flatten)]
    export: FolderExport,
}

impl Charts {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        self.export
            .run(context, |kind| kind == EntryKind::Chart, export_charts)
    }
}
