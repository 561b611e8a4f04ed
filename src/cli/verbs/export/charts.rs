//! `landfall export charts`.

use super::folder::FolderExport;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Args;
use landfall_model::report::EntryKind;
use landfall_serve::export_charts;

/// Write the charts as a folder with an index.yaml, which any web server offers to helm
#[derive(Args)]
pub(crate) struct ExportCharts {
    #[command(flatten)]
    export: FolderExport,
}

impl ExportCharts {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.export
            .run(context, |kind| kind == EntryKind::Chart, export_charts)
    }
}
