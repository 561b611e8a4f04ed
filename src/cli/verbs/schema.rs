//! `landfall schema`: prints the JSON schema of a document or of the report.

use crate::cli::shared::{CliError, Exit, VerbOutcome};
use crate::evidence;
use clap::{Args, ValueEnum};
use landfall_item::manifest::ManifestDocument;
use landfall_model::config::Site;
use landfall_model::report;
use landfall_model::report::RunReport;
use serde_json::json;

/// Print the JSON schema of a document, for editors
#[derive(Args)]
pub(crate) struct SchemaCommand {
    /// The document
    #[arg(value_enum, default_value_t)]
    document: SchemaDocument,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum SchemaDocument {
    /// A manifest: what to mirror
    #[default]
    Manifest,
    /// A site file: registry, proxies and limits
    Site,
    /// The report of --output json and --report
    Report,
    /// A record of the log that --log writes
    Log,
}

impl SchemaCommand {
    pub(crate) fn run(self) -> Result<VerbOutcome, CliError> {
        let schema = match self.document {
            SchemaDocument::Manifest => json!(schemars::schema_for!(ManifestDocument)),
            SchemaDocument::Site => json!(schemars::schema_for!(Site)),
            SchemaDocument::Report => report::schema(),
            SchemaDocument::Log => evidence::schema(),
        };
        let mut report = RunReport::default();
        report.extra.insert("schema".into(), json!(schema));
        let text = serde_json::to_string_pretty(&schema).map_err(|error| {
            CliError::new(Exit::Failed, format!("cannot write the schema: {error}"))
        })?;
        Ok(VerbOutcome {
            report,
            ..VerbOutcome::text(text + "\n").document()
        })
    }
}
