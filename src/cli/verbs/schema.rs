//! `landfall schema`: prints the JSON schema of a manifest, a site, the report or the log.

use crate::cli::help::pages::archived_file;
use crate::cli::shared::{CliError, ReportMember, VerbOutcome, VerbReport};
use crate::evidence;
use clap::{Args, ValueEnum};
use serde_json::Value;
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
            SchemaDocument::Report => generated_schema("report"),
            SchemaDocument::Log => evidence::schema(),
        };
        let text = serde_json::to_string_pretty(&schema)
            .map_err(|error| CliError::failed(format!("cannot write the schema: {error}")))?;
        let mut report = VerbReport::default();
        report.add(ReportMember::Schema(schema));
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
    use crate::cli::shared::verb_report::ReportDocument;
    use landfall_item::manifest::ManifestDocument;
    use landfall_model::config::Site;
    use schemars::generate::SchemaSettings;
    use schemars::{JsonSchema, generate::Contract};
    use serde_json::json;
    use std::fmt::Write as _;

    fn inline_schema<T: JsonSchema>() -> Value {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.contract = Contract::Serialize;
        });
        let mut schema = json!(settings.into_generator().into_root_schema_for::<T>());
        simplify(&mut schema);
        schema
    }

    /// Gives each schema a type: alternatives are reduced to their types and values.
    fn simplify(schema: &mut Value) {
        if let Value::Array(all) = schema {
            all.iter_mut().for_each(simplify);
        }
        let Value::Object(schema) = schema else {
            return;
        };
        schema.values_mut().for_each(simplify);
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ").trim_end_matches('.').to_owned();
        }
        schema.retain(|_, value| *value != json!(true));
        for key in ["oneOf", "anyOf"] {
            // the alternatives of the members are read below
            let is_enum = |one: &Value| one["properties"].is_null() || key == "anyOf";
            let Some(Value::Array(all)) = schema.get(key).cloned() else {
                continue;
            };
            if !all.iter().all(is_enum) {
                continue;
            }
            schema.remove(key);
            let mut kinds: Vec<Value> = Vec::new();
            for kind in all.iter().flat_map(|one| match &one["type"] {
                Value::Array(kinds) => kinds.clone(),
                kind => vec![kind.clone()],
            }) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            let values = all.iter().map(|one| match (&one["const"], &one["enum"]) {
                (Value::Null, Value::Array(values)) => Some(values.clone()),
                (Value::Null, _) => None,
                (value, _) => Some(vec![value.clone()]),
            });
            if let Some(values) = values.collect::<Option<Vec<_>>>() {
                schema.insert("enum".into(), values.concat().into());
            }
            let kind = if kinds.len() == 1 {
                kinds.remove(0)
            } else {
                kinds.into()
            };
            schema.insert("type".into(), kind);
        }
    }

    /// Removes null from the types of members that are omitted instead of null.
    fn remove_null(schema: &mut Value) {
        if let Value::Object(members) = schema {
            members.values_mut().for_each(remove_null);
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten() {
            let kinds = property["type"].as_array().cloned();
            if let Some(kinds) = kinds.filter(|_| !required.contains(&json!(name))) {
                property["type"] = kinds.into_iter().find(|kind| kind != "null").into();
            }
        }
    }

    /// The schema of a report: the document, and every member that commands add to it.
    fn report_schema() -> Value {
        let mut document = inline_schema::<ReportDocument<'_>>();
        remove_null(&mut document);
        for member in inline_schema::<ReportMember>()["oneOf"].as_array().unwrap() {
            for (name, schema) in member["properties"].as_object().unwrap() {
                let mut schema = schema.clone();
                schema["description"] = member["description"].clone();
                document["properties"][name] = schema;
            }
        }
        document
    }

    /// The rows of a table in `docs/reference/report.md`.
    fn rows(schema: &Value, has_commands: bool) -> Vec<String> {
        let properties = schema["properties"].as_object().unwrap();
        let row = |(name, schema): (&String, &Value)| {
            let kind = match &schema["type"] {
                Value::Array(kinds) => {
                    let kinds: Vec<_> = kinds.iter().filter_map(Value::as_str).collect();
                    kinds.join(" or ")
                }
                kind => kind.as_str().unwrap().to_owned(),
            };
            let text = schema["description"].as_str().unwrap();
            let (meaning, commands) = text.rsplit_once(" (of ").unwrap_or((text, "all)"));
            let mut row = format!("| `{name}` | {kind} |");
            if has_commands {
                let _ = write!(row, " {} |", commands.trim_end_matches(')'));
            }
            format!("{row} {meaning} |\n")
        };
        properties.iter().map(row).collect()
    }

    #[test]
    fn the_page_about_reports_has_every_member() {
        let schema = report_schema();
        let page = include_str!("../../../docs/reference/report.md").to_lowercase();
        let parts = &schema["properties"];
        for row in [
            rows(&schema, true),
            rows(&parts["items"]["items"], false),
            rows(&parts["totals"], false),
            rows(&parts["hosts"]["items"], false),
        ]
        .concat()
        {
            assert!(
                page.contains(&row.to_lowercase()),
                "docs/reference/report.md lacks {row}"
            );
        }
    }

    #[test]
    fn the_schemas_in_the_documentation_are_those_of_the_types() {
        let manifest = json!(schemars::schema_for!(ManifestDocument));
        let site = json!(schemars::schema_for!(Site));
        let documents = [
            ("manifest", manifest),
            ("site", site),
            ("report", report_schema()),
        ]
        .map(|(document, schema)| {
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
