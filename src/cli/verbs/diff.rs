//! `landfall diff`: how two locks, bundles or receipts differ, and how much of the newer one is
//! new.

use crate::cli::shared::comparison::{Comparison, Known};
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use clap::Args;
use landfall_content::Entry;
use landfall_item::kind_named;
use landfall_model::report::{ItemStatus, ReportItem, RunReport};
use std::path::PathBuf;

/// Show how two locks, bundles or receipts differ, and how much a delta would carry
#[derive(Args)]
pub(crate) struct Diff {
    /// The older one
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The newer one
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

impl Diff {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let (old, new) = (
            Known::open(context, &self.old)?,
            Known::open(context, &self.new)?,
        );
        let comparison = Comparison::new(context, &old, &new)?;
        let mut report = RunReport {
            items: items(&new),
            ..RunReport::default()
        };
        report.extra = comparison.members();
        let outcome = Outcome::new(report, comparison.text(), Exit::Done);
        Ok(Outcome {
            markdown: Some(comparison.markdown()),
            ..outcome
        })
    }
}

/// The items of the newer side.
fn items(new: &Known) -> Vec<ReportItem> {
    match new {
        Known::Lock { lock, .. } => lock.each_entry().map(|entry: Entry| entry.item()).collect(),
        Known::Receipt(receipt) => receipt
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
