//! `landfall update`: the versions in manifests, moved by their policies.

use crate::cli::shared::losses::loss_lines;
use crate::cli::shared::summary::{good_of_all, lost_count};
use crate::cli::shared::updating::{self, UpdateFlags, counted};
use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::update::Updated;
use clap::Args;
use landfall_content::store::Disk;
use landfall_model::report::RunReport;
use serde_json::json;

/// Move versions in manifests to the newest that their policies allow, and lock again
///
/// Only the bytes of versions change: comments and layout stay. A version moves only where upstream
/// has every item that uses it.
#[derive(Args)]
pub(crate) struct Update {
    #[command(flatten)]
    update: UpdateFlags,
    /// Write nothing; exit 4 if something is newer, moved or gone
    #[arg(long)]
    check: bool,
    /// Show what would change and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Update {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.run(async {
            let client = context.client()?;
            let store = Disk::open(&context.memory_dir()?)?;
            let planned = self.update.plan(&client, &store, true).await;
            client.remember_hosts(&store, "update");
            let (updated, old) = planned?;
            if self.check || self.dry_run {
                return Ok(self.told(&updated, client.report(updated.items())));
            }
            UpdateFlags::write_manifests(&updated, context)?;
            let locking =
                self.update
                    .write_lock((&client, context), &updated, old.as_ref(), &store);
            let (locked, is_new) = locking.await?;
            client.remember_hosts(&store, "update");
            let mut items = locked.items.clone();
            updated.fail(&mut items);
            let mut report = client.report(items);
            updating::tell(&mut report, &updated);
            report.extra.insert("changes".into(), json!(locked.changes));
            report
                .extra
                .insert("lock".into(), json!(locked.lock.fingerprint()));
            let lines = updating::lines(&updated)
                .into_iter()
                .chain(updating::lock_lines(&locked));
            let mut text: String = lines.map(|line| line + "\n").collect();
            text += &loss_lines(&report.items);
            let mut files = updated.files();
            files.extend(is_new.then_some(&self.update.lock));
            let totals = report.totals();
            let closing = match files.is_empty() {
                true => format!("nothing is written: {}", good_of_all(&report.items)),
                false => format!(
                    "wrote {}: {}",
                    updating::names(&files),
                    good_of_all(&report.items)
                ),
            };
            text += &format!("{closing}{}\n", lost_count(&totals));
            let summary = format!("**{}**", summary(&updated));
            let markdown = updating::markdown(&summary, &updated, &report).finish();
            Ok(Outcome {
                markdown: Some(markdown),
                ..Outcome::of(report, text)
            })
        })
    }

    /// What a check or a dry run tells.
    fn told(&self, updated: &Updated, mut report: RunReport) -> Outcome {
        updating::tell(&mut report, updated);
        let mut text: String = updating::lines(updated)
            .into_iter()
            .map(|line| line + "\n")
            .collect();
        let failing = report
            .items
            .iter()
            .filter(|item| updated.failed.iter().any(|one| one.name == item.name));
        text += &loss_lines(&failing.cloned().collect::<Vec<_>>());
        let files = updated.files();
        text += &match (self.check, files.is_empty()) {
            (true, _) => format!("checked: {}\n", summary(updated)),
            (false, true) => format!("would write nothing: {}\n", summary(updated)),
            (false, false) => {
                format!(
                    "would write {} and the lock: {}\n",
                    updating::names(&files),
                    summary(updated)
                )
            }
        };
        let markdown =
            updating::markdown(&format!("**{}**", summary(updated)), updated, &report).finish();
        let mut outcome = Outcome {
            markdown: Some(markdown),
            ..Outcome::of(report, text)
        };
        if self.check && updated.has_news() {
            outcome.exit = Exit::Refused;
        }
        outcome
    }
}

/// What is new, in words.
fn summary(updated: &Updated) -> String {
    match &counted(updated)[..] {
        "" if updated.failed.is_empty() => "nothing newer, moved or gone".into(),
        "" => "nothing newer, moved or gone as far as it could be asked".into(),
        counted => counted.into(),
    }
}
