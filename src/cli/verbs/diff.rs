//! `landfall diff`: compares two locks, bundles or receipts.

use crate::cli::shared::comparison::{ComparedSide, LockComparison};
use crate::cli::shared::patch_report::PatchReport;
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::client::DeliveredBundles;
use clap::Args;
use landfall_bundle::{Bundle, DeltaBase, PackPlan};
use landfall_content::{BlobRead, LockEntry};
use landfall_item::kind_named;
use landfall_item::lockfile::Lock;
use landfall_model::report::{ItemStatus, Markdown, ReportItem, count_of, markdown_text};
use landfall_model::today;
use std::path::PathBuf;
use std::sync::Arc;

/// The data that an estimate is based on.
const BASED_ON: &str = "the patches of the changed layers and files; the compression of a layer is \
                        estimated from its first MiB";

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
    /// Also estimate how much `pack --since OLD --patches` would carry. Reads the changed layers
    /// and files of both versions, from the bundles or the store
    #[arg(long)]
    patches: bool,
}

impl DiffCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let old = ComparedSide::open(context, &self.old)?;
        let new = ComparedSide::open(context, &self.new)?;
        let comparison = LockComparison::new(context, &old, &new)?;
        let mut report = VerbReport::of(items(&new));
        let mut text = comparison.text();
        let mut markdown = comparison.markdown();
        comparison.add_to(&mut report);
        if self.patches {
            let estimate = PatchEstimate::new(context, &old, &new)?;
            text += &estimate.lines(context.global.verbose > 0);
            estimate.add_to(&mut markdown);
            report.add(estimate.member());
        }
        let outcome = VerbOutcome::new(report, text, Exit::Done);
        Ok(outcome.with_markdown(markdown.finish()))
    }
}

/// The estimated content of a bundle with patches from the older side to the newer one.
enum PatchEstimate {
    Estimated(PatchReport),
    /// The reason why there is no estimate.
    Impossible(String),
}

impl PatchEstimate {
    fn new(
        context: &Context,
        old: &ComparedSide,
        new: &ComparedSide,
    ) -> Result<PatchEstimate, CliError> {
        let (Some(old), Some(new)) = (locked_side(old), locked_side(new)) else {
            return Ok(PatchEstimate::Impossible(
                "a receipt lists blobs without sizes and items: compare with the lock or bundle \
                 that was pushed"
                    .into(),
            ));
        };
        let (old_lock, old_bundle) = old;
        let (lock, bundle) = new;
        let bundles = old_bundle.iter().chain(bundle);
        let delivered = DeliveredBundles {
            locks: vec![old_lock.clone()],
            bundles: bundles.cloned().collect(),
        };
        let base = old_bundle
            .as_ref()
            .map_or_else(|| DeltaBase::lock(old_lock), Bundle::as_base);
        let bases = [base];
        let store = context.has_store().then(|| context.store()).transpose()?;
        let store = store.map(|store| store as Arc<dyn BlobRead>);
        let blobs = delivered.content(store);
        let plan = PackPlan::delta(lock, &blobs, &bases, today())?;
        // items that could not be locked are missing from any bundle
        let mut absent = plan.missing.iter().filter(|item| item.digest.is_some());
        if let Some(first) = absent.next() {
            let more = match absent.count() {
                0 => String::new(),
                count => format!(" and of {}", count_of(count, "other item")),
            };
            return Ok(PatchEstimate::Impossible(format!(
                "the content of {}{more} is neither in a bundle nor in the store: run `landfall \
                 pull`, or name the bundle",
                first.item.name
            )));
        }
        let summary = delivered.estimate(&plan, lock, &blobs, &bases, &*context.progress)?;
        let report = PatchReport::new(&plan, lock, &summary, true);
        Ok(PatchEstimate::Estimated(report))
    }

    /// The lines of text mode.
    fn lines(&self, per_item: bool) -> String {
        match self {
            PatchEstimate::Impossible(why) => format!("with patches: no estimate: {why}\n"),
            PatchEstimate::Estimated(report) => format!(
                "with patches: {}\n{}  estimated from    {BASED_ON}\n",
                report.summary(),
                report.lines(per_item)
            ),
        }
    }

    fn add_to(&self, document: &mut Markdown) {
        match self {
            PatchEstimate::Impossible(why) => {
                document.line(&format!(
                    "With patches: no estimate: {}",
                    markdown_text(why)
                ));
            }
            PatchEstimate::Estimated(report) => {
                document.line(&format!(
                    "With patches: {}, estimated from {BASED_ON}",
                    report.summary()
                ));
                let columns = ["name", "whole", "left out", "patched", "patches"];
                document.table("With patches", &columns, report.rows());
            }
        }
    }

    fn member(self) -> ReportMember {
        match self {
            PatchEstimate::Impossible(reason) => ReportMember::NoPatches {
                estimated: false,
                reason,
            },
            PatchEstimate::Estimated(report) => ReportMember::Patches(report),
        }
    }
}

/// The lock of a side, and the bundle with its content, if there is one. `None` for a receipt.
fn locked_side(side: &ComparedSide) -> Option<(&Lock, &Option<Bundle>)> {
    match side {
        ComparedSide::Lock { lock, bundle, .. } => Some((lock, bundle)),
        ComparedSide::Receipt(_) => None,
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
                digest: Some(item.digest.clone()),
                ..ReportItem::new(
                    kind_named(&item.name),
                    item.name.clone(),
                    ItemStatus::Present,
                    None,
                )
            })
            .collect(),
    }
}
