//! `landfall schema`: the JSON schema of the documents that people write, and of reports.

use crate::cli::shared::{Exit, Failure, Outcome};
use clap::{Args, ValueEnum};
use landfall_item::manifest::Document;
use landfall_model::config::Site;
use landfall_model::report::{self, RunReport};
use serde_json::json;

/// Print the JSON schema of a document, for editors
#[derive(Args)]
pub(crate) struct Schema {
    /// Which document
    #[arg(value_enum, default_value_t)]
    document: Kind,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Kind {
    /// What is wanted
    #[default]
    Manifest,
    /// A place where landfall or its users run
    Site,
    /// What --output json prints, and --report writes
    Report,
}

impl Schema {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let schema = match self.document {
            Kind::Manifest => json!(schemars::schema_for!(Document)),
            Kind::Site => json!(schemars::schema_for!(Site)),
            Kind::Report => report::schema(),
        };
        let mut report = RunReport::default();
        report.extra.insert("schema".into(), json!(schema));
        let text = serde_json::to_string_pretty(&schema).map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot write the schema: {error}"))
        })?;
        Ok(Outcome {
            report,
            ..Outcome::text(text + "\n").document()
        })
    }
}
