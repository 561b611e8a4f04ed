//! `landfall publish`: switches the servers of a store to a lock.

use crate::cli::shared::bundle_flags::LockArgs;
use crate::cli::shared::failed_items::loss_lines;
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::listing::{count, lines};
use crate::cli::shared::{CliError, Context, ReportMember, VerbOutcome, VerbReport};
use clap::Args;
use landfall_content::bucket::block_on;
use landfall_content::{LockEntry, present_blobs, unique_blobs};
use landfall_item::lockfile::losses;
use landfall_model::report::{ItemStatus, ReportItem, TransferSide};

/// Switch all servers of a store to a new lock
///
/// These are the servers that run `landfall serve --store`. The store must have everything that the
/// lock names; nothing is downloaded. The content of the previous lock stays available by digest.
#[derive(Args)]
pub(crate) struct PublishCommand {
    #[command(flatten)]
    lock: LockArgs,
    /// Check that the store has everything, and publish nothing
    #[arg(long)]
    dry_run: bool,
}

impl PublishCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let lock = context.read_lock(self.lock.path())?;
        let published_store = context.published_store(context.limits)?;
        let store = context.store()?;
        // Claims the content before the check, so that no `gc` deletes what the check finds.
        if !self.dry_run {
            store.claim(
                &lock.fingerprint(),
                &lock.to_text(),
                lock.digests().collect(),
            )?;
        }
        // Another run may have added or removed objects since the store listed them.
        store.distrust_lists();
        let here = present_blobs(
            &*store,
            unique_blobs(lock.each_entry()),
            false,
            &*context.progress,
        )?;
        let is_here = |entry: &LockEntry| {
            entry
                .parts
                .iter()
                .all(|part| !part.is_stored() || here.contains(&part.descriptor.digest))
        };
        let items: Vec<ReportItem> = lock
            .each_entry()
            .map(|entry| {
                let status = if is_here(&entry) {
                    ItemStatus::Present
                } else {
                    ItemStatus::Missing
                };
                ReportItem {
                    status,
                    ..entry.item()
                }
            })
            .collect();
        let place = published_store.place();
        let all = count(&items);
        let absent = items
            .iter()
            .filter(|item| item.status == ItemStatus::Missing);
        let absent: Vec<String> = absent
            .map(|item| format!("{} {}", item.kind, item.name))
            .collect();
        let mut report = VerbReport::of(items);
        if !absent.is_empty() {
            let words = format!(
                "{place} lacks items of the lock\n{}",
                lines(&absent).trim_end()
            );
            let failure = CliError::failed(words)
                .on(TransferSide::Source)
                .with_help("run `landfall pull` with this --store, and publish again");
            return Err(failure.with_report(report));
        }
        ImageSignatures::verify(context.site.as_ref(), &lock, store.clone())?;
        // Servers answer 404 for items that could not be locked.
        let lost = losses(&lock);
        let lost_lines = loss_lines(&lost);
        report.items.extend(lost);
        let fingerprint = lock.fingerprint();
        if self.dry_run {
            let text = format!(
                "{lost_lines}would publish {all} in {place}\n  lock fingerprint  {fingerprint}\n"
            );
            return Ok(VerbOutcome::of(report, text));
        }
        let before = block_on(async move { Ok(published_store.publish(lock.to_text()).await) })??;
        let before = before.map(|before| before.lock);
        report.add(ReportMember::Published {
            place: place.clone(),
            lock: fingerprint.clone(),
            before: before.clone(),
        });
        let previous = before
            .map(|before| format!("  previous lock     {before}\n"))
            .unwrap_or_default();
        let text = format!(
            "{lost_lines}published {all} in {place}\n  lock fingerprint  {fingerprint}\n{previous}"
        );
        Ok(VerbOutcome::of(report, text))
    }
}
