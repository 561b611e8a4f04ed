//! `landfall lock`: resolves manifests to digests.

use crate::cli::shared::bundle_flags::ManifestArgs;
use crate::cli::shared::bundle_with_bases::FromArchives;
use crate::cli::shared::failed_items::{add_changed_names, loss_lines};
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::listing::{change_lines, endpoint_line, failure_counts, success_counts};
use crate::cli::shared::output_file::{check_output, written_path};
use crate::cli::shared::stale_lock::load_previous_lock;
use crate::cli::shared::verb_report::OpenRow;
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::client::{Client, PreviousLock};
use crate::lock::{LockChange, Locked};
use clap::Args;
use landfall_content::store::DiskStore;
use landfall_item::lockfile::FILE_NAME;
use landfall_item::{OpenReference, PinPolicy};
use landfall_model::report::{ItemStatus, Notice};
use landfall_model::{PlatformRequest, Shard};
use landfall_signature::SignaturePolicy;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Resolve the manifests to digests and write the lock
#[derive(Args)]
pub(crate) struct LockCommand {
    #[command(flatten)]
    manifests: ManifestArgs,
    /// A platform for the images of plain lists, as in linux/amd64 [default: all] (may be repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<PlatformRequest>,
    /// The lock to write
    #[arg(long, value_name = "FILE", default_value = FILE_NAME, value_parser = written_path())]
    lock: PathBuf,
    #[command(flatten)]
    from: FromArchives,
    /// Compare with upstream and write nothing; exit with 4 if something changed
    #[arg(long)]
    check: bool,
    /// Resolve every tag again, even if its entry in the manifest is unchanged
    #[arg(long, conflicts_with = "check")]
    refresh: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl LockCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let wanted = context.read_manifests(&self.manifests.paths()?, &self.platforms)?;
        let old = load_previous_lock(context, &self.lock)?;
        // Without an old lock, everything would be new.
        if self.check && old.is_none() {
            let path = self.lock.display();
            return Err(CliError::usage(format!(
                "there is no {path} to check; run without --check first"
            )));
        }
        if !self.check && !self.dry_run {
            check_output("the lock", &self.lock)?;
        }
        let pins = if self.check || self.refresh {
            PinPolicy::Refresh
        } else {
            PinPolicy::Keep
        };
        context.run(async {
            let client = context.client_for_lock(&self.lock, Shard::default(), &self.from.from)?;
            let store = DiskStore::open(&context.memory_dir()?)?;
            let locked = client
                .lock(&wanted, old.as_ref().map(|old| &old.lock), pins, &store)
                .await;
            client.remember_hosts(&store, "lock");
            let mut report = VerbReport::from(client.report(locked.items.clone()));
            report.add_notices(notices(&locked.changes));
            context.page.set_content(&locked.lock, Some(&store));
            let policy = client.signatures_for(&wanted);
            self.finish(&client, &policy, locked, old.as_ref(), report)
        })
    }

    fn finish(
        &self,
        client: &Client,
        policy: &SignaturePolicy,
        locked: Locked,
        old: Option<&PreviousLock>,
        mut report: VerbReport,
    ) -> Result<VerbOutcome, CliError> {
        let mut text = String::new();
        let lock = &locked.lock;
        // If nothing could be resolved, the old lock is kept: a new one would have no pins.
        let resolved_nothing = report.has_losses() && !report.has_successes();
        let mut changed = locked.changes;
        if resolved_nothing && !self.check {
            changed.retain(|change| change.change != "removed");
        }
        report.add(ReportMember::changes(&changed));
        report.add(ReportMember::EndpointChanges(locked.endpoints.clone()));
        let changes = changed.iter().flat_map(change_lines);
        let lines = changes.chain(locked.endpoints.iter().map(endpoint_line));
        text.extend(lines.map(|line| line + "\n"));
        let open: Vec<_> = lock
            .charts
            .iter()
            .flat_map(|chart| chart.open.iter().map(move |open| (&chart.name, open)))
            .map(|(chart, open)| (chart.to_string(), open.clone()))
            .collect();
        // The open references of an unchanged chart were reported when the chart was locked.
        let is_new = |name: &str| {
            report
                .items
                .iter()
                .any(|item| item.status == ItemStatus::Done && item.name == name)
        };
        for (item, OpenReference { reference, at, why }) in
            open.iter().filter(|(item, _)| is_new(item))
        {
            let _ = writeln!(text, "open {item}: {at}: {reference}: {why}");
        }
        let rows = open.into_iter().map(|(item, open)| OpenRow { item, open });
        report.add(ReportMember::Open(rows.collect()));
        let new = report
            .items
            .iter()
            .filter(|item| item.status == ItemStatus::Done);
        for (item, note) in new.filter_map(|item| Some((item, item.reason.as_ref()?))) {
            let _ = writeln!(text, "note: {} {}: {note}", item.kind, item.name);
        }
        text += &loss_lines(&report.items);
        text += &add_changed_names(&mut report);
        let signatures = ImageSignatures::recorded_by(policy, lock);
        text += &signatures.lines();
        signatures.add_to(&mut report);
        if !resolved_nothing || self.check {
            report.add(ReportMember::Lock(lock.fingerprint()));
        }
        let writes = !self.check && !self.dry_run && !resolved_nothing;
        if writes {
            client.write_lock(old, &self.lock, lock)?;
        }
        let moved = changed.len() + locked.endpoints.len();
        let (verb, result) = match (self.check, moved) {
            (true, 0) if report.has_losses() => (
                "checked",
                ": nothing changed, as far as upstream could be reached",
            ),
            (true, 0) => ("checked", ": nothing changed"),
            (true, _) => ("checked", ": something changed"),
            (false, _) if writes => ("locked", ""),
            (false, _) => ("would lock", ""),
        };
        let counted = success_counts(&report.items);
        let lost = failure_counts(&report.totals());
        let path = self.lock.display();
        text += &match (resolved_nothing && !self.check, old) {
            (true, Some(_)) => {
                format!("nothing could be locked: {counted}{lost}; {path} was left unchanged\n")
            }
            (true, None) => {
                format!("nothing could be locked: {counted}{lost}; {path} was not written\n")
            }
            (false, _) => format!(
                "{verb} {counted} in {path}{lost}{result}, fingerprint {}\n",
                lock.fingerprint()
            ),
        };
        let mut outcome = VerbOutcome::of(report, text);
        if self.check && moved > 0 {
            outcome.exit = Exit::Refused;
        }
        Ok(outcome)
    }
}

/// The notices of the report: items that changed or are gone upstream.
fn notices(changes: &[LockChange]) -> Vec<Notice> {
    changes.iter().filter_map(notice).collect()
}

fn notice(change: &LockChange) -> Option<Notice> {
    match change.change {
        "gone" => Some(Notice::gone(&change.name)),
        "moved" => Some(Notice::moved(
            &change.name,
            change.from.clone(),
            change.to.clone(),
        )),
        _ => None,
    }
}
