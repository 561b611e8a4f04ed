//! `landfall update`: updates the versions in manifests by their policies.

use crate::cli::shared::failed_items::{add_changed_names, loss_lines};
use crate::cli::shared::listing::{failure_counts, success_counts};
use crate::cli::shared::update_report::{self, UpdateFlags, counted};
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome, VerbReport};
use crate::client::LockFileState;
use crate::update::UpdateOutcome;
use clap::Args;
use landfall_content::store::DiskStore;

/// Update versions in manifests by their policies, and lock again
///
/// Only the versions change: comments and layout stay as they are. A version is updated only if
/// upstream has every item that uses it.
#[derive(Args)]
pub(crate) struct UpdateCommand {
    #[command(flatten)]
    update: UpdateFlags,
    /// Write nothing; exit with 4 if something is newer, changed or gone upstream
    #[arg(long)]
    check: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl UpdateCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        context.run(async {
            let client = context.client()?;
            let store = DiskStore::open(&context.memory_dir()?)?;
            let inputs = self.update.open(context)?;
            // Requests all digests, to report tags that were pushed again. `refresh` does this
            // only with --digests.
            let updated = client.update(&inputs.request(true), &store).await;
            client.remember_hosts(&store, "update");
            let updated = updated?;
            if self.check || self.dry_run {
                return Ok(self.planned_outcome(&updated, client.report(updated.items()).into()));
            }
            client.write_manifests(&updated)?;
            let (locked, lock_file) = client
                .lock_and_write(
                    &updated,
                    inputs.previous_lock.as_ref(),
                    &self.update.lock,
                    self.update.referrers,
                    &store,
                )
                .await?;
            client.remember_hosts(&store, "update");
            let mut items = locked.items.clone();
            updated.add_failures(&mut items);
            let mut report = VerbReport::from(client.report(items));
            let mut text = update_report::report_update(&mut report, &updated);
            text += &update_report::report_lock(&mut report, &locked, lock_file);
            text += &loss_lines(&report.items);
            text += &add_changed_names(&mut report);
            let mut files = updated.files();
            files.extend((lock_file == LockFileState::Written).then_some(&self.update.lock));
            let totals = report.totals();
            let counted = format!(
                "{}{}",
                success_counts(&report.items),
                failure_counts(&totals)
            );
            text += &if files.is_empty() {
                format!("{counted}: no file was changed\n")
            } else {
                format!("wrote {}: {counted}\n", update_report::names(&files))
            };
            let summary = format!("**{}**", summary(&updated));
            let markdown = update_report::markdown(&summary, &updated, &report).finish();
            Ok(VerbOutcome::of(report, text).with_markdown(markdown))
        })
    }

    /// The outcome of a check or a dry run.
    fn planned_outcome(&self, updated: &UpdateOutcome, mut report: VerbReport) -> VerbOutcome {
        let mut text = update_report::report_update(&mut report, updated);
        let failing = report
            .items
            .iter()
            .filter(|item| updated.failed.iter().any(|one| one.name == item.name));
        text += &loss_lines(&failing.cloned().collect::<Vec<_>>());
        let files = updated.files();
        text += &match (self.check, files.is_empty()) {
            (true, _) => format!("checked: {}\n", summary(updated)),
            (false, true) => format!("would change no manifest: {}\n", summary(updated)),
            (false, false) => {
                format!(
                    "would write {}, and the lock if it changes: {}\n",
                    update_report::names(&files),
                    summary(updated)
                )
            }
        };
        let markdown =
            update_report::markdown(&format!("**{}**", summary(updated)), updated, &report)
                .finish();
        let mut outcome = VerbOutcome::of(report, text).with_markdown(markdown);
        if self.check && updated.has_news() {
            outcome.exit = Exit::Refused;
        }
        outcome
    }
}

fn summary(updated: &UpdateOutcome) -> String {
    match &counted(updated)[..] {
        "" if updated.failed.is_empty() => "nothing newer, moved or gone".into(),
        "" => "nothing newer, moved or gone, as far as upstream could be reached".into(),
        counted => counted.into(),
    }
}
