//! `--from`: archives of other tools as a source of content.

use crate::cli::shared::CliError;
use crate::client::Client;
use clap::Args;
use landfall_content::archives::{ImportedBlobs, SourceArchive, find_blobs};
use landfall_model::report::{RunReport, count_of, one_line};
use landfall_model::{Descriptor, Digest, human_size};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct FromArchives {
    /// Use the content of this archive or OCI layout of another tool, and the network only for
    /// content that it lacks (may be repeated)
    #[arg(long = "from", value_name = "ARCHIVE|DIR")]
    pub(crate) from: Vec<PathBuf>,
}

/// Reports the content that the client copied from archives: adds it to `report`, and returns the
/// lines about it.
pub(crate) fn report_copied(report: &mut RunReport, client: &Client) -> String {
    report_archives(report, &client.imports(), "copied")
}

/// Like [`report_copied`], for the content that a pull of `wanted` would copy from the archives.
/// Removes it from `wanted`.
pub(crate) fn report_available(
    report: &mut RunReport,
    from: &FromArchives,
    wanted: &mut BTreeMap<Digest, Descriptor>,
) -> Result<String, CliError> {
    let mut found = Vec::new();
    for path in &from.from {
        let archive =
            SourceArchive::open(path).map_err(|error| CliError::usage(error.to_string()))?;
        let imports = find_blobs(&archive, wanted)
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", path.display())))?;
        // Each blob is copied from the first archive that has it.
        wanted.retain(|digest, _| !imports.digests.contains(digest));
        found.push(imports);
    }
    Ok(report_archives(report, &found, "would copy"))
}

fn report_archives(report: &mut RunReport, imports: &[ImportedBlobs], verb: &str) -> String {
    if imports.is_empty() {
        return String::new();
    }
    let member = imports.iter().map(|one| {
        json!({
            "path": one.path, "blobs": one.digests.len(), "bytes": one.bytes,
            "notUsed": one.skipped,
        })
    });
    report.extra.insert("archives".into(), member.collect());
    let lines = imports.iter().map(|one| {
        let path = one.path.display().to_string();
        let count = count_of(one.digests.len(), "blob");
        let left = one
            .skipped
            .iter()
            .map(|why| format!("  {}\n", one_line(why)));
        format!(
            "{verb} {count} ({}) from {}\n{}",
            human_size(one.bytes),
            one_line(&path),
            left.collect::<String>()
        )
    });
    lines.collect()
}
