//! `landfall schema`: prints the JSON schema of a manifest, a site, the report or the log.

use crate::cli::help::pages::archived_file;
use crate::cli::shared::{CliError, Exit, VerbOutcome};
use crate::evidence;
use clap::{Args, ValueEnum};
use landfall_model::report;
use landfall_model::report::RunReport;
use serde_json::{Value, json};
use std::path::Path;

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
    /// A record of the evidence log (--log)
    Log,
}

impl SchemaCommand {
    pub(crate) fn run(self) -> Result<VerbOutcome, CliError> {
        let schema = match self.document {
            SchemaDocument::Manifest => generated_schema("manifest"),
            SchemaDocument::Site => generated_schema("site"),
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

/// The schema that was generated from the types of a document.
// `schemars` at run time would add 300 KB of code for text that is known when the program is built
fn generated_schema(document: &str) -> Value {
    let path = Path::new("docs/reference/schemas").join(format!("{document}.json"));
    let text = archived_file(&path).expect("the build script adds every schema");
    serde_json::from_str(&text).expect("the test below compares every schema with the types")
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::manifest::ManifestDocument;
    use landfall_model::config::Site;

    #[test]
    fn the_schemas_in_the_documentation_are_those_of_the_types() {
        let mut manifest = json!(schemars::schema_for!(ManifestDocument));
        // the item kind that only tests have
        manifest["properties"]
            .as_object_mut()
            .unwrap()
            .remove("notes");
        manifest["$defs"]
            .as_object_mut()
            .unwrap()
            .remove("NoteEntry");
        let site = json!(schemars::schema_for!(Site));
        let documents = [("manifest", manifest), ("site", site)].map(|(document, schema)| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("docs/reference/schemas")
                .join(format!("{document}.json"));
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            if std::env::var_os("LANDFALL_WRITE_GOLDEN").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            (document, schema, path, text)
        });
        for (document, schema, path, text) in documents {
            assert!(
                std::fs::read_to_string(&path).unwrap() == text,
                "{} is outdated: run this test with LANDFALL_WRITE_GOLDEN=1",
                path.display()
            );
            assert_eq!(
                generated_schema(document),
                schema,
                "build again after writing"
            );
        }
    }
}
