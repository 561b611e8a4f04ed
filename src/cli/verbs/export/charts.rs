//! `landfall export charts`: writes a chart repository.

use super::folder::FolderExport;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Args;
use landfall_model::report::EntryKind;
use landfall_serve::export_charts;

/// Write a chart repository: a folder with charts and an index.yaml
///
/// Any web server can serve it to helm.
#[derive(Args)]
pub(crate) struct ExportCharts {
    #[command(flatten)]
    export: FolderExport,
}

impl ExportCharts {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.export.run(
            context,
            |kind| kind == EntryKind::Chart,
            Box::new(export_charts),
        )
    }
}
