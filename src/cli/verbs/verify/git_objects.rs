//! The git repositories of a bundle: whether their packs have everything that their refs need.

use crate::cli::shared::verb_report::RepositoryRow;
use crate::cli::shared::{CliError, ReportMember, VerbReport};
use landfall_content::{BlobRead, missing_blobs};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedGitRepository, LockedItem};
use landfall_model::report::{ItemStatus, Progress, ReportItem, count_of};
use landfall_model::{Digest, Limits};
use std::sync::Arc;

/// The git repositories of a lock, by whether their objects were checked.
#[derive(Default)]
pub(super) struct GitObjects {
    /// The names of the repositories whose packs have everything that their refs need.
    complete: Vec<String>,
    /// The names of the repositories whose packs are not all present.
    unchecked: Vec<String>,
}

impl GitObjects {
    /// Reads the packs of all repositories in `lock` from `blobs`, one repository after the other.
    /// Refuses the lock if an object is missing or not valid.
    pub(super) fn verify(
        lock: &Lock,
        blobs: &Arc<dyn BlobRead>,
        limits: Limits,
        progress: &dyn Progress,
    ) -> Result<GitObjects, CliError> {
        let mut objects = GitObjects::default();
        if lock.git.is_empty() {
            return Ok(objects);
        }
        let mut failed = Vec::new();
        progress.begin("check git", lock.git.len() as u64, 0);
        for repository in &lock.git {
            let name = repository.name.clone();
            if has_packs(repository, &**blobs)? {
                match repository.verify_objects(&lock.git, blobs, limits) {
                    Ok(()) => objects.complete.push(name),
                    Err(error) => failed.push(ReportItem {
                        status: ItemStatus::Failed,
                        reason: Some(error.to_string()),
                        ..LockedItem::Git(repository).entry().item()
                    }),
                }
            } else {
                objects.unchecked.push(name);
            }
            progress.item(&repository.name);
        }
        progress.end();
        if failed.is_empty() {
            return Ok(objects);
        }
        Err(incomplete(failed))
    }

    /// The lines of text mode; empty if there are no repositories.
    pub(super) fn lines(&self) -> String {
        let mut lines = String::new();
        if !self.complete.is_empty() {
            let count = count_of(self.complete.len(), "repository");
            lines += &format!("  git               {count} complete\n");
        }
        for name in &self.unchecked {
            lines += &format!("  not checked       {name}: not all of its packs are here\n");
        }
        lines
    }

    /// Adds the member `repositories` to a report, if there are any repositories.
    pub(super) fn add_to(&self, report: &mut VerbReport) {
        let complete = self.complete.iter().map(|name| (name, true));
        let all = complete.chain(self.unchecked.iter().map(|name| (name, false)));
        let rows: Vec<_> = all
            .map(|(name, checked)| RepositoryRow {
                name: name.clone(),
                checked,
            })
            .collect();
        if !rows.is_empty() {
            report.add(ReportMember::Repositories(rows));
        }
    }
}

/// Whether all packs of a repository are present. A delta or a partial bundle may lack some.
fn has_packs(repository: &LockedGitRepository, blobs: &dyn BlobRead) -> Result<bool, CliError> {
    let entry = LockedItem::Git(repository).entry();
    let missing = missing_blobs([&entry], blobs);
    let missing = missing.map_err(|error| CliError::refused(error.to_string()))?;
    let is_missing = |digest: &Digest| missing.iter().any(|one| one.blob.digest == *digest);
    Ok(!repository.packs.iter().any(|pack| is_missing(&pack.digest)))
}

fn incomplete(failed: Vec<ReportItem>) -> CliError {
    let verb = if failed.len() == 1 { "is" } else { "are" };
    let head = format!(
        "{} {verb} not complete",
        count_of(failed.len(), "git repository")
    );
    CliError::refused_items(head, failed).with_help(
        "the transfer did not damage the bundle: lock the repository again, and pack a new bundle",
    )
}
