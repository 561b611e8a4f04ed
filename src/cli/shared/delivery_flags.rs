//! The flags that `push` and `mirror` share, and the output of their results.

use super::failed_items::{item_lines, shortened};
use super::finish::is_planned;
use super::listing::{count_kinds, failure_counts, success_counts};
use super::open_bundle::SeriesNumbers;
use super::output_file::{check_output, written_path};
use super::shard::{ShardFlag, report_shard};
use super::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport, input_file};
use crate::client::Client;
use crate::push::{ProblemKind, PushOptions, Pushed, Receipt};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use landfall_content::{OutputGuard, merge_into_file};
use landfall_item::item_kinds;
use landfall_model::config::ReferrerPolicy;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, TransferSide, count_of};
use landfall_model::{DestinationMap, Digest, Failure, TargetRegistry, human_size};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of problems of a push that are listed.
const MAX_PROBLEMS: usize = 30;

/// The flags of `push` and `mirror`.
#[derive(Args)]
pub(crate) struct DeliveryFlags {
    /// The registry to upload to [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    pub(crate) to: Option<TargetRegistry>,
    /// Move tags that point to another digest. Without this flag such images are skipped
    #[arg(long)]
    pub(crate) move_tags: bool,
    /// Upload nothing if an item cannot be delivered, for example because its tag already points to
    /// another digest. By default only such items fail
    #[arg(long, conflicts_with = "shard")]
    all_or_nothing: bool,
    /// Check every manifest and blob of images that are already there, and upload what is missing
    #[arg(long)]
    recheck: bool,
    /// Write a receipt that lists what the registry has afterwards; implies --recheck
    #[arg(long, value_name = "FILE", conflicts_with = "shard", value_parser = written_path())]
    pub(crate) receipt: Option<PathBuf>,
    /// Create missing Harbor projects, as private ones
    #[arg(long)]
    create_projects: bool,
    /// What to do with signatures and other referrers: `try` delivers an item even if the registry
    /// refuses some of them, `required` gives it no tag then, `skip` leaves them out. Those that
    /// `verify` of the site demands are always required [default: `referrers` of the site, or try]
    #[arg(long, value_name = "POLICY", value_parser = referrer_policy())]
    referrers: Option<ReferrerPolicy>,
    /// Kinds of items that are not pushed, such as those that the registry does not accept: image,
    /// file, chart, package, git, provider (comma-separated)
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = item_kind)]
    skip_kinds: Vec<EntryKind>,
    /// Show what would be uploaded and what prevents it, and upload nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) shard: ShardFlag,
}

/// Parses a value of `--referrers`.
fn referrer_policy() -> impl TypedValueParser<Value = ReferrerPolicy> {
    PossibleValuesParser::new(["required", "try", "skip"]).map(|word| match word.as_str() {
        "required" => ReferrerPolicy::Required,
        "skip" => ReferrerPolicy::Skip,
        _ => ReferrerPolicy::Try,
    })
}

/// Parses a value of `--skip-kinds`: the name of a kind, or its plural.
fn item_kind(text: &str) -> Result<EntryKind, String> {
    let wanted = text.to_ascii_lowercase();
    let name = wanted.strip_suffix('s').unwrap_or(&wanted);
    let names: Vec<String> = item_kinds().map(|kind| kind.to_string()).collect();
    item_kinds()
        .find(|kind| kind.to_string() == name)
        .ok_or_else(|| format!("the kinds are {}", names.join(", ")))
}

/// Writes a receipt. Keeps the numbers that another push has written to it meanwhile.
fn write_receipt(path: &Path, receipt: &mut Receipt, series: &SeriesNumbers) -> io::Result<()> {
    let written = merge_into_file(path, |old| {
        // a file that is not a receipt any more is replaced
        let present = old.and_then(|old| serde_json::from_slice::<Receipt>(old).ok());
        receipt.series =
            series.merged_with(present.map_or_else(BTreeMap::new, |present| present.series));
        Ok(serde_json::to_string_pretty(receipt).unwrap_or_default() + "\n")
    });
    written.map(drop)
}

impl DeliveryFlags {
    /// Unless `--to` names a registry, removes the first of `arguments` that names one, and takes
    /// it instead.
    pub(crate) fn take_registry(&mut self, arguments: &mut Vec<PathBuf>) {
        let is_registry = |path: &PathBuf| input_file::registry(path).is_some();
        if self.to.is_none()
            && let Some(index) = arguments.iter().position(is_registry)
        {
            self.to = input_file::registry(&arguments.remove(index));
        }
    }

    /// The mapping to `--to` or the site's registry. Checks that the receipts can be written.
    pub(crate) fn mapping(&self, context: &Context) -> Result<DestinationMap, CliError> {
        for receipt in self.receipts(context) {
            check_output("the receipt", &receipt)?;
            let mut guard = OutputGuard::new(false);
            guard.check(&receipt, |path| input_file::receipt(path).is_ok());
            guard.finish().map_err(|failure| {
                failure.with_help("name another file for the receipt, or move the file away")
            })?;
        }
        context.mapping(self.to.as_ref())
    }

    /// The receipts that this push writes.
    pub(crate) fn receipts(&self, context: &Context) -> BTreeSet<PathBuf> {
        // A receipt describes a whole push, so a push of one shard writes none. After all shards,
        // a push without --shard writes the receipt.
        let is_written = !self.dry_run && !self.shard.is_given();
        let receipts = self
            .receipt
            .clone()
            .into_iter()
            .chain(context.site_receipt());
        receipts.filter(|_| is_written).collect()
    }

    /// The options of the push, from flags and site.
    pub(crate) fn options(&self, context: &Context) -> PushOptions {
        let registry = context
            .site
            .as_ref()
            .and_then(|site| site.registry.as_ref());
        PushOptions {
            move_tags: self.move_tags,
            all_or_nothing: self.all_or_nothing,
            // A receipt states what the registry has, so every blob that it lists is looked up.
            recheck: self.recheck || self.receipt.is_some() || context.site_receipt().is_some(),
            dry_run: self.dry_run,
            create_projects: self.create_projects,
            stop_at_damage: false,
            index: registry.map(|registry| registry.index).unwrap_or_default(),
            referrers: self.referrers.unwrap_or_else(|| {
                let site = context.site.as_ref();
                site.map_or_else(Default::default, |site| site.referrers)
            }),
            own_signatures: BTreeSet::new(),
            skip_kinds: self.skip_kinds.iter().copied().collect(),
        }
    }

    /// Awaits `delivering`, writes the receipts, and returns the outcome of the verb. `fingerprint`
    /// is that of the lock.
    pub(crate) async fn run(
        &self,
        context: &Context,
        client: &Client,
        fingerprint: &Digest,
        series: &SeriesNumbers,
        mapping: &DestinationMap,
        delivering: impl Future<Output = Result<Pushed, Failure>>,
    ) -> Result<VerbOutcome, CliError> {
        let mut pushed = delivering.await.map_err(|error| {
            let report = client.report(Vec::new());
            CliError::from(error).with_report(report)
        })?;
        let items = std::mem::take(&mut pushed.items);
        let mut report = VerbReport::from(client.report(items));
        Self::add_members(&mut report, &pushed, mapping);
        if context.has_document() {
            report.add(ReportMember::Delivered(pushed.receipt.items.clone()));
        }
        // A partial bundle is pushed with a lock of the items that it has, but the complete lock
        // was approved.
        pushed.receipt.lock = fingerprint.clone();
        report.add(ReportMember::Lock(fingerprint.clone()));
        if pushed.is_stopped {
            return Err(refused(report, &pushed, mapping));
        }
        let runner = report_shard(&self.shard, client.shard(), &mut report);
        let mut text = self.text(&report, &pushed, mapping, &runner);
        let _ = writeln!(text, "  lock fingerprint  {fingerprint}");
        let outcome = VerbOutcome::of_run(self.dry_run, report, text);
        for path in &self.receipts(context) {
            if let Err(error) = write_receipt(path, &mut pushed.receipt, series) {
                let message = format!(
                    "delivered, but cannot write the receipt {}: {error}",
                    path.display()
                );
                return Err(CliError::new(Exit::Partial, message).with_report(outcome.report));
            }
        }
        Ok(outcome)
    }

    /// Adds the members of the report that only `push` and `mirror` have.
    fn add_members(report: &mut VerbReport, pushed: &Pushed, mapping: &DestinationMap) {
        report.add(ReportMember::To(mapping.target().to_string()));
        report.add(ReportMember::Problems(pushed.problems.clone()));
        report.add(ReportMember::Moved(pushed.moved.clone()));
        report.add(ReportMember::Trimmed(pushed.trimmed.clone()));
        if let Some(why) = &pushed.unlisted {
            report.add(ReportMember::Unlisted(why.clone()));
        }
        report.add(ReportMember::NeededBytes(pushed.needed_bytes));
    }

    fn text(
        &self,
        report: &VerbReport,
        pushed: &Pushed,
        mapping: &DestinationMap,
        runner: &str,
    ) -> String {
        let mut text = String::new();
        for moved in &pushed.moved {
            let _ = writeln!(
                text,
                "moved    {}\n         {} -> {}",
                moved.at, moved.from, moved.to
            );
        }
        if !pushed.trimmed.is_empty() {
            let _ = writeln!(
                text,
                "trimmed  {} to the locked platforms, because the registry refuses an index with \
                 missing children. Their digests differ from the lock: pin them with `rewrite \
                 --pin --receipt FILE`, or lock all platforms",
                match pushed.trimmed.len() {
                    1 => "1 index".into(),
                    count => format!("{count} indexes"),
                }
            );
        }
        text.extend(
            pushed
                .unlisted
                .iter()
                .map(|why| format!("unlisted {why}\n")),
        );
        let lacking = report.items.iter();
        let lacking = lacking.filter(|item| !item.status.is_success());
        let (planned, lacking): (Vec<&ReportItem>, Vec<&ReportItem>) =
            lacking.partition(|item| self.dry_run && is_planned(item));
        let present = report
            .items
            .iter()
            .filter(|item| item.status == ItemStatus::Present);
        for item in &planned {
            let _ = writeln!(
                text,
                "{} {}",
                item.name,
                item.reason.as_deref().unwrap_or_default()
            );
        }
        text += &item_lines(lacking);
        let totals = report.totals();
        let _ = writeln!(
            text,
            "{runner}{} {} to {}{}: {} new, {} there, {} in {}",
            if self.dry_run {
                "would deliver"
            } else {
                "delivered"
            },
            if self.dry_run {
                count_kinds(planned.iter().copied().chain(present))
            } else {
                success_counts(&report.items)
            },
            mapping.target(),
            failure_counts(&totals),
            if self.dry_run {
                planned.len()
            } else {
                totals.done
            },
            totals.present,
            human_size(totals.bytes_transferred),
            count_of(totals.requests as usize, "request")
        );
        if self.dry_run {
            let needed = human_size(pushed.needed_bytes);
            let registry = &mapping.target().registry;
            let _ = writeln!(
                text,
                "  needs at most     {needed} at {registry}; only Harbor reports its free space"
            );
        }
        text
    }
}

/// The error that lists the problems. The exit code is 4 if the only problems are that the registry
/// refuses indexes (with `index: exact` in the site) or lacks blobs that a delta omits. Otherwise
/// it is 3 if the registry already has some of the items, and 1 if it has none.
fn refused(report: VerbReport, pushed: &Pushed, mapping: &DestinationMap) -> CliError {
    let is_check = |kind| matches!(kind, ProblemKind::Index | ProblemKind::Content);
    let exit = if pushed.problems.iter().all(|problem| is_check(problem.kind)) {
        Exit::Refused
    } else if report.has_successes() {
        Exit::Partial
    } else {
        Exit::Failed
    };
    let mut message = format!(
        "nothing was uploaded to {}, because of {}",
        mapping.target(),
        count_of(pushed.problems.len(), "problem")
    );
    let lines = pushed
        .problems
        .iter()
        .map(|problem| match problem.stopped() {
            stopped @ 2.. if problem.kind != ProblemKind::Content => {
                format!("{} (affects {stopped} deliveries)", problem.message)
            }
            _ => problem.message.clone(),
        });
    shortened(lines, MAX_PROBLEMS).for_each(|line| message += &format!("\n  - {line}"));
    CliError::new(exit, message)
        .on(TransferSide::Destination)
        .with_report(report)
}
