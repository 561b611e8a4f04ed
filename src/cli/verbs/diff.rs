//! `landfall diff`: compares two locks, bundles or receipts.

use crate::cli::shared::compared_side::ComparedSide;
use crate::cli::shared::comparison::LockComparison;
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome};
use clap::Args;
use landfall_content::LockEntry;
use landfall_item::kind_named;
use landfall_model::report::{ItemStatus, ReportItem, RunReport};
use std::path::PathBuf;

/// Compare two locks, bundles or receipts
///
/// Also shows how much a delta between them would contain.
#[derive(Args)]
pub(crate) struct DiffCommand {
    /// The older lock, bundle or receipt
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The newer lock, bundle or receipt
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

impl DiffCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let old = ComparedSide::open(context, &self.old)?;
        let new = ComparedSide::open(context, &self.new)?;
        let comparison = LockComparison::new(context, &old, &new)?;
        let mut report = RunReport {
            items: items(&new),
            ..RunReport::default()
        };
        report.extra = comparison.members();
        let outcome = VerbOutcome::new(report, comparison.text(), Exit::Done);
        Ok(VerbOutcome {
            markdown: Some(comparison.markdown()),
            ..outcome
        })
    }
}

/// The items of the newer side.
fn items(new: &ComparedSide) -> Vec<ReportItem> {
    match new {
        ComparedSide::Lock { lock, .. } => lock
            .each_entry()
            .map(|entry: LockEntry| entry.item())
            .collect(),
        ComparedSide::Receipt(receipt) => receipt
            .items
            .iter()
            .map(|item| ReportItem {
                kind: kind_named(&item.name),
                name: item.name.clone(),
                digest: Some(item.digest.clone()),
                bytes: None,
                packages: 0,
                status: ItemStatus::Present,
                reason: None,
            })
            .collect(),
    }
}
