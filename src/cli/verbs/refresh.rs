//! `landfall refresh`: update, lock, pull and pack as one command for a scheduled job.

use crate::cli::shared::bundle_report::{
    SerialFlags, note_whole_file, report_bundle, signed_lines, signer, volume_lines,
};
use crate::cli::shared::failed_items::{add_changed_names, loss_lines};
use crate::cli::shared::input_file::OpenedFile;
use crate::cli::shared::listing::{failure_counts, success_counts};
use crate::cli::shared::open_bundle::object;
use crate::cli::shared::output_file::check_output;
use crate::cli::shared::package_changes::package_tables;
use crate::cli::shared::patch_report::PatchReport;
use crate::cli::shared::store_location::StoreLocation;
use crate::cli::shared::update_report::{self, UpdateFlags, counted};
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::client::{
    DeliveredBundles, RefreshBase, RefreshRequest, Refreshed, RefreshedBundle, unnamed_series,
};
use crate::update::UpdateOutcome;
use clap::Args;
use landfall_bundle::{PackOptions, VolumeSize};
use landfall_content::bucket::Bucket;
use landfall_content::store::DiskStore;
use landfall_item::lockfile::Lock;
use landfall_model::report::{count_of, markdown_code};
use landfall_model::{Shard, human_size, sum_sizes};
use std::path::{Path, PathBuf};

/// Update, lock, pull and pack in one command, for scheduled jobs
///
/// It can be interrupted at any time; the next run does the remaining work. If nothing is new, it
/// writes nothing.
#[derive(Args)]
pub(crate) struct RefreshCommand {
    #[command(flatten)]
    update: UpdateFlags,
    /// The bundle to write if something is new
    #[arg(short, long, value_name = "BUNDLE")]
    out: PathBuf,
    /// Leave out what this bundle, lock or push receipt contains (if repeated: what all of them
    /// contain)
    #[arg(long, value_name = "BUNDLE|LOCK|RECEIPT")]
    since: Vec<PathBuf>,
    /// Replace changed layers and files by patches, as `pack --patches` does
    #[arg(long)]
    patches: bool,
    /// The zstd compression level for content that is not compressed yet
    #[arg(long, value_name = "1-19", default_value_t = 3,
        value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
    /// Split the bundle into volumes, as `pack --volume-size` does
    #[arg(long, value_name = "SIZE|dvd|bd|fat32")]
    volume_size: Option<VolumeSize>,
    /// Sign the bundle, as `pack --sign` does
    #[arg(long, value_name = "KEY")]
    sign: Option<String>,
    #[command(flatten)]
    serial: SerialFlags,
    /// Also detect tags that were pushed again (one extra request per image)
    #[arg(long)]
    digests: bool,
    /// Pack a partial bundle if items are missing; the bundle records what it lacks
    #[arg(long)]
    allow_partial: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl RefreshCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        // An unreadable key or base, or an unwritable bundle, is reported before any request to
        // upstream.
        let signer = signer(self.sign.as_deref())?;
        let object = self.object(context)?;
        let (bases, delivered) = self.bases(context)?;
        let object_store = match context.store_location()? {
            StoreLocation::Folder(_) => None,
            StoreLocation::Bucket(location) => Some(location),
        };
        context.run(async {
            let client = context.client_for_lock(&self.update.lock, Shard::default(), &[])?;
            let memory = DiskStore::open(&context.memory_dir()?)?;
            let inputs = self.update.open(context)?;
            if self.dry_run {
                let updated = client.update(&inputs.request(self.digests), &memory).await;
                client.remember_hosts(&memory, "refresh");
                let updated = updated?;
                if self.serial.lacks_series(updated.manifest.name.as_deref()) {
                    return Err(unnamed_series().into());
                }
                let report = client.report(updated.items());
                return Ok(planned_outcome(&updated, report.into()));
            }
            let request = RefreshRequest {
                update: inputs.request(self.digests),
                lock_path: &self.update.lock,
                previous_lock: inputs.previous_lock.as_ref(),
                referrers: self.update.referrers,
                object_store,
                out: self.out.clone(),
                object,
                bases,
                patch_since: self.patches.then_some(delivered),
                pack: PackOptions { level: self.level },
                volume_size: self.volume_size,
                signer,
                serial: self.serial.serial,
                series: self.serial.series(),
                allow_partial: self.allow_partial,
            };
            let show = |lock: &_| context.page.set_content(lock, Some(&memory));
            let refreshed = Box::pin(client.refresh(request, &memory, show)).await?;
            let report = client.report(refreshed.items.clone());
            Ok(self.outcome(&refreshed, report.into(), context))
        })
    }

    /// The object that `--out` names. If `--out` names a file, returns `None` after checking that
    /// the file can be written.
    fn object(&self, context: &Context) -> Result<Option<(Bucket, String)>, CliError> {
        if self.out == Path::new("-") {
            return Err(CliError::usage(
                "refresh writes the bundle to a file or object, not to stdout",
            )
            .with_help("name it with -o BUNDLE; `landfall pack -o -` writes to stdout"));
        }
        let object = object(context, &self.out)?;
        if object.is_none() {
            check_output("the bundle", &self.out)?;
        } else if self.volume_size.is_some() {
            return Err(CliError::usage(
                "a bundle in an object store is one object: leave out --volume-size",
            ));
        }
        Ok(object)
    }

    fn bases(&self, context: &Context) -> Result<(Vec<RefreshBase>, DeliveredBundles), CliError> {
        let mut bases = Vec::new();
        let mut delivered = DeliveredBundles::default();
        for path in &self.since {
            let opened = OpenedFile::open(context, path)?;
            if self.patches {
                opened.add_to(&mut delivered)?;
            }
            bases.push(RefreshBase {
                complete_lock: opened.complete_lock(),
                pushed: opened.pushed_items(),
                base: opened.into_base(),
            });
        }
        Ok((bases, delivered))
    }

    fn outcome(
        &self,
        refreshed: &Refreshed,
        mut report: VerbReport,
        context: &Context,
    ) -> VerbOutcome {
        let Refreshed {
            updated,
            locked,
            lock_file,
            files,
            bundle,
            ..
        } = refreshed;
        let mut text = update_report::report_update(&mut report, updated);
        let lock_lines = update_report::report_lock(&mut report, locked, *lock_file);
        let nothing_new = files.is_empty() && bundle.is_none();
        if !nothing_new {
            text += &lock_lines;
        }
        text += &loss_lines(&report.items);
        text += &add_changed_names(&mut report);
        if !files.is_empty() {
            let counted = success_counts(&report.items);
            let names = update_report::names(&files.iter().collect::<Vec<_>>());
            text += &format!(
                "wrote {names}: {counted}{}\n",
                failure_counts(&report.totals())
            );
        }
        if let Some(bundle) = bundle {
            text += &self.bundle_text(bundle, &locked.lock, &mut report, context);
        }
        if nothing_new {
            text += if report.has_losses() {
                "nothing new, as far as upstream could be reached; nothing was written\n"
            } else {
                "unchanged\n"
            };
        }
        let markdown = markdown(refreshed, &report, nothing_new);
        let is_packed = report.bundle().is_some();
        let mut outcome = VerbOutcome::of(report, text).with_markdown(markdown);
        // A bundle was written, so not everything failed.
        if outcome.exit == Exit::Failed && is_packed {
            outcome.exit = Exit::Partial;
        }
        outcome
    }

    /// The lines about the bundle. Adds the bundle to the report.
    fn bundle_text(
        &self,
        bundle: &RefreshedBundle,
        lock: &Lock,
        report: &mut VerbReport,
        context: &Context,
    ) -> String {
        let RefreshedBundle {
            plan,
            packed,
            patched,
            keys,
        } = bundle;
        let Some(written) = packed else {
            return "no bundle was written, because items are missing; --allow-partial writes one \
                    without them\n"
                .into();
        };
        let is_split = self.volume_size.is_some();
        note_whole_file(&self.out, is_split, &*context.progress);
        let mut text = format!("packed {}\n", self.out.display());
        text += &report_bundle(report, plan, &self.out, written, keys);
        text += &volume_lines(written, is_split);
        text += &signed_lines(keys);
        if !self.since.is_empty() {
            let omitted = sum_sizes(plan.omitted.iter().map(|blob| blob.size));
            text += &format!("  left out          {}\n", human_size(omitted));
        }
        if let Some(summary) = patched {
            let patches = PatchReport::new(plan, lock, summary, false);
            text += &patches.lines(context.global.verbose > 0);
            report.add(ReportMember::Patches(patches));
        }
        text
    }
}

fn markdown(refreshed: &Refreshed, report: &VerbReport, nothing_new: bool) -> String {
    let updated = &refreshed.updated;
    let locked = &refreshed.locked;
    let mut counted = counted(updated);
    if counted.is_empty() && nothing_new {
        counted = "unchanged".into();
    } else if counted.is_empty() {
        // As in `diff` and on the HTML page, a version that replaces another counts as one change.
        let changes = locked.changes.iter();
        let changes = changes.filter(|change| change.replaced_by.is_none());
        let count = changes.count() + locked.endpoints.len();
        counted = format!("{} in the lock", count_of(count, "change"));
    }
    let mut summary = format!("**{counted}**");
    if let Some(bundle) = report.bundle() {
        summary += &format!("; the bundle has {}", human_size(bundle.bytes));
    } else if report.has_losses() {
        let lost = failure_counts(&report.totals()).replacen(", ", ": ", 1);
        summary = format!("**No bundle was written**{lost}\n\n{summary}");
    }
    summary += &update_report::gone(updated, &locked.changes);
    let mut document = update_report::markdown(&summary, updated, report);
    package_tables(&mut document, &locked.changes);
    if let Some(fingerprint) = report.lock() {
        let fingerprint = markdown_code(&fingerprint.to_string());
        document.line(&format!("Lock fingerprint {fingerprint}"));
    }
    document.finish()
}

/// The outcome of a dry run.
fn planned_outcome(updated: &UpdateOutcome, mut report: VerbReport) -> VerbOutcome {
    let mut text = update_report::report_update(&mut report, updated);
    text += &loss_lines(&report.items);
    text += &add_changed_names(&mut report);
    let files = updated.files();
    if files.is_empty() {
        text += "would write no manifest\n";
    } else {
        let names = update_report::names(&files);
        text += &format!("would write {names}, the lock and the bundle\n");
    }
    let markdown = update_report::markdown("**dry run**", updated, &report).finish();
    VerbOutcome::of(report, text).with_markdown(markdown)
}
