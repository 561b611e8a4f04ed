//! `landfall pull`: downloads the items of a lock.

use crate::cli::shared::bundle_flags::LockArgs;
use crate::cli::shared::bundle_report::{
    self, SerialFlags, disk_space_for, report_bundle, report_disk_space, signed_lines,
};
use crate::cli::shared::bundle_with_bases::{FromArchives, report_available, report_copied};
use crate::cli::shared::failed_items::{add_changed_names, loss_lines};
use crate::cli::shared::listing::{count_kinds, failure_counts, success_counts};
use crate::cli::shared::open_bundle::is_remote;
use crate::cli::shared::output_file::check_folder;
use crate::cli::shared::shard::{ShardFlag, part_prefix, report_shard};
use crate::cli::shared::store_location::{StoreLocation, is_store};
use crate::cli::shared::{CliError, Context, VerbOutcome, VerbReport};
use crate::client::{BundleOptions, PulledBundle};
use crate::pull::ShardShare;
use clap::Args;
use landfall_bundle::{Bundle, PackOptions, PackPlan};
use landfall_content::store::DiskStore;
use landfall_content::{BlobRead, BlobStore, EntryPart, present_blobs, unique_blobs};
use landfall_item::lockfile::Lock;
use landfall_model::report::{ItemStatus, ReportItem, RunReport, count_of, markdown_block};
use landfall_model::{Shard, human_size, sum_sizes, today};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Download the items of the lock into the store or a bundle
#[derive(Args)]
#[command(mut_arg("serial", |serial| serial.requires("bundle")))]
pub(crate) struct PullCommand {
    #[command(flatten)]
    lock: LockArgs,
    /// Download into this bundle instead of the store; content that is in the store is copied
    #[arg(long, value_name = "BUNDLE", conflicts_with = "shard")]
    bundle: Option<PathBuf>,
    /// The zstd compression level for content that is not compressed yet
    #[arg(long, value_name = "1-19", default_value_t = 3, requires = "bundle",
        value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
    /// Sign the bundle, as `pack --sign` does
    #[arg(long, value_name = "KEY", requires = "bundle")]
    sign: Option<String>,
    #[command(flatten)]
    serial: SerialFlags,
    #[command(flatten)]
    from: FromArchives,
    #[command(flatten)]
    shard: ShardFlag,
    /// Hash the stored content of the lock again, even if the journal records it as verified
    #[arg(long)]
    rehash: bool,
    /// Show what would be downloaded, and download nothing
    #[arg(long)]
    dry_run: bool,
}

impl PullCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let lock = self.lock.load(context)?;
        context.note_unused_site(&[self.lock.path().to_owned()]);
        let shard = self.shard.get()?;
        let place = context.store_location()?;
        match (&self.bundle, &place) {
            (Some(out), _) => self.to_bundle(context, &lock, &context.store_dir()?, out),
            (None, StoreLocation::Bucket(_)) if !self.from.from.is_empty() => {
                Err(CliError::usage("--from needs a store on disk")
                    .with_help("name a folder with --store DIR, or omit --from"))
            }
            (None, place) if self.dry_run => self.planned_outcome(context, &lock, shard, place),
            (None, place) => self.to_store(context, &lock, shard, place),
        }
    }

    fn to_store(
        &self,
        context: &Context,
        lock: &Lock,
        shard: Shard,
        place: &StoreLocation,
    ) -> Result<VerbOutcome, CliError> {
        context.run(async {
            let client = context.client_for_lock(self.lock.path(), shard, &self.from.from)?;
            let (store, memory) = place.open(context, &client)?;
            let items = match place {
                StoreLocation::Folder(_) => client.pull(lock, &memory, self.rehash).await,
                StoreLocation::Bucket(_) => {
                    client
                        .pull_to(lock, store.clone(), self.rehash, &BTreeSet::new())
                        .await
                }
            };
            // A failed run has contacted hosts, too.
            client.remember_hosts(&memory, "pull");
            let items = items?;
            context.page.set_content(lock, Some(&*store));
            let mut report = VerbReport::from(client.report(items));
            let mut text = report_copied(&mut report, &client) + &loss_lines(&report.items);
            if !lock.unresolved.is_empty() {
                let _ = writeln!(
                    text,
                    "{} of the lock could not be resolved: run `landfall lock` again",
                    count_of(lock.unresolved.len(), "item")
                );
            }
            text += &add_changed_names(&mut report);
            text += &report_shard(&self.shard, shard, &mut report);
            text += &closing_line(&report, shard, &place.to_string());
            Ok(VerbOutcome::of(report, text))
        })
    }

    fn to_bundle(
        &self,
        context: &Context,
        lock: &Lock,
        dir: &Path,
        out: &Path,
    ) -> Result<VerbOutcome, CliError> {
        if is_remote(out) || out == Path::new("-") {
            let out = out.display();
            return Err(
                CliError::usage(format!("--bundle names a file, not {out}")).with_help(format!(
                    "pull into the store, and then run `landfall pack -o {out}`"
                )),
            );
        }
        let mut plan = PackPlan::of_complete_lock(lock, today());
        plan.serial = self.serial.serial_of(lock)?;
        let plan = Arc::new(plan);
        // Checked before the download: an item that could not be locked makes the bundle
        // incomplete.
        if let Err(error) = plan.check_complete() {
            let report = bundle_report::pack_report(lock, &plan, ItemStatus::Skipped);
            return Err(CliError::from(error).with_report(report));
        }
        let store = existing_store(dir)?;
        let signer = bundle_report::signer(self.sign.as_deref())?;
        if !self.dry_run {
            check_folder("the bundle", out)?;
        }
        if self.dry_run {
            return self.planned_bundle(context, lock, &plan, store.as_ref(), out);
        }
        context.run(async {
            let client =
                context.client_for_lock(self.lock.path(), Shard::default(), &self.from.from)?;
            let pack = PackOptions { level: self.level };
            let options = BundleOptions {
                store: store.clone(),
                pack,
                signer,
                rehash: self.rehash,
            };
            let pulled = client.pull_bundle(lock, plan.clone(), out, options).await;
            if let Some(store) = &store {
                client.remember_hosts(store, "pull");
            }
            let PulledBundle {
                items,
                packed,
                keys,
            } = pulled?;
            let is_made = packed.is_some();
            context.page.set_content(lock, None);
            let mut report = VerbReport::from(client.report(items));
            let mut text = report_copied(&mut report, &client) + &loss_lines(&report.items);
            text += &add_changed_names(&mut report);
            text += &closing_line(&report, Shard::default(), &out.display().to_string());
            match packed {
                Some(written) => {
                    text += &report_bundle(&mut report, &plan, out, &written, &keys);
                    text += &signed_lines(&keys);
                }
                None => {
                    let out = out.display();
                    let _ = writeln!(
                        text,
                        "no bundle was written; {out}.partial has the downloaded content, and \
                         another run resumes"
                    );
                }
            }
            // CI systems show the start of the summary: begin with the most important line.
            let markdown = (!is_made)
                .then(|| format!("**No bundle was written**\n\n{}", markdown_block(&text)));
            Ok(VerbOutcome {
                markdown,
                ..VerbOutcome::of(report, text)
            })
        })
    }

    /// The outcome of a dry run with `--bundle`.
    fn planned_bundle(
        &self,
        context: &Context,
        lock: &Lock,
        plan: &PackPlan,
        store: Option<&DiskStore>,
        out: &Path,
    ) -> Result<VerbOutcome, CliError> {
        let mut needed = unique_blobs(lock.each_entry());
        let computed = plan.computed();
        needed.retain(|blob| !computed.contains(&blob.digest));
        let here = match store {
            Some(store) => present_blobs(store, needed.clone(), false, &*context.progress)?,
            None => HashSet::new(),
        };
        let mut wanted: BTreeMap<_, _> = needed
            .into_iter()
            .filter(|blob| !here.contains(&blob.digest))
            .map(|blob| (blob.digest.clone(), blob))
            .collect();
        let mut report = bundle_report::pack_report(lock, plan, ItemStatus::Skipped);
        // like the real run, which reuses an earlier bundle with this name
        if let Ok(old) = Bundle::open(out) {
            wanted.retain(|digest, blob| old.stat(digest).ok().flatten() != Some(blob.size));
        }
        let archives = report_available(&mut report, &self.from, &mut wanted)?;
        // an unfinished bundle may have some of it
        let bytes = sum_sizes(wanted.values().map(|blob| blob.size));
        let more = format!(
            "  to download       at most {}\n{archives}",
            human_size(bytes)
        );
        bundle_report::dry_run(plan, out, report, &more)
    }

    /// The outcome of a dry run.
    fn planned_outcome(
        &self,
        context: &Context,
        lock: &Lock,
        shard: Shard,
        place: &StoreLocation,
    ) -> Result<VerbOutcome, CliError> {
        let share = ShardShare::new(lock, shard);
        let store: Option<Arc<dyn BlobStore>> = match place {
            StoreLocation::Folder(dir) => existing_store(dir)?.map(|disk| Arc::new(disk) as _),
            StoreLocation::Bucket(_) => Some(context.store()?),
        };
        let mut wanted = unique_blobs(share.each_entry());
        let here = match &store {
            // not with `rehash`, which removes damaged blobs from the store
            Some(store) => present_blobs(&**store, wanted.clone(), false, &*context.progress)?,
            None => HashSet::new(),
        };
        let mut items: Vec<ReportItem> = Vec::new();
        for own in share.each() {
            let is_here =
                |part: &EntryPart| !part.is_stored() || here.contains(&part.descriptor.digest);
            let status = if own.entry.parts.iter().all(is_here) {
                ItemStatus::Present
            } else {
                ItemStatus::Skipped
            };
            items.push(ReportItem {
                status,
                ..own.item()
            });
        }
        items.extend(share.losses());
        wanted.retain(|blob| !here.contains(&blob.digest));
        let bytes = sum_sizes(wanted.iter().map(|blob| blob.size));
        let room = match (&store, place) {
            (None, StoreLocation::Folder(dir)) => Some(disk_space_for(dir, bytes)?),
            (None, StoreLocation::Bucket(_)) => None,
            (Some(store), _) => {
                store.disk_space(&mut wanted.iter().map(|blob| (&blob.digest, blob.size)))?
            }
        };
        let mut report = VerbReport::of(items);
        let room = room
            .map(|room| report_disk_space(&mut report, &room))
            .unwrap_or_default();
        let totals = report.totals();
        let mut wanted: BTreeMap<_, _> = wanted
            .into_iter()
            .map(|blob| (blob.digest.clone(), blob))
            .collect();
        let archives = report_available(&mut report, &self.from, &mut wanted)?;
        // the archives have the rest
        let bytes = sum_sizes(wanted.values().map(|blob| blob.size));
        let runner = report_shard(&self.shard, shard, &mut report);
        let text = format!(
            "{}{archives}{runner}would pull {}{} into {place}{}: {} there, {} to download\n{room}",
            loss_lines(&share.losses()),
            part_prefix(shard),
            count_kinds(&report.items),
            failure_counts(&totals),
            totals.present,
            human_size(bytes)
        );
        Ok(VerbOutcome::of_run(true, report, text))
    }
}

/// Opens the store in this folder, if there is one.
fn existing_store(dir: &Path) -> Result<Option<DiskStore>, CliError> {
    Ok(is_store(dir).then(|| DiskStore::open(dir)).transpose()?)
}

fn closing_line(report: &RunReport, shard: Shard, into: &str) -> String {
    let totals = report.totals();
    format!(
        "pulled {}{} into {}{}: {} new, {} there, {} in {}\n",
        part_prefix(shard),
        success_counts(&report.items),
        into,
        failure_counts(&totals),
        totals.done,
        totals.present,
        human_size(totals.bytes_transferred),
        count_of(totals.requests as usize, "request")
    )
}
