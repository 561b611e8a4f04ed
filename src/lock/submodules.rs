//! Requests for submodules of git repositories.

use super::run::LockRun;
use landfall_item::{Exclusion, GitRequest, ItemRequest};
use landfall_model::report::EntryKind;
use std::collections::BTreeSet;

impl LockRun<'_> {
    /// Postpones the requests for repositories that the old lock has as submodules of others too,
    /// until those others are locked. The old lock has one entry with the refs that the manifest
    /// lists and with the commits that others pin, so the refs alone would look like a changed
    /// request: they would be looked up again, and with them newer submodules.
    pub(super) fn postpone_submodules(&mut self, requests: &mut Vec<GitRequest>) {
        let old = self.old;
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for repository in &old.git {
            let submodules = repository.submodules.iter().flatten();
            let others = submodules.filter(|submodule| submodule.name != repository.name);
            names.extend(others.map(|submodule| submodule.name.as_str()));
        }
        for request in std::mem::take(requests) {
            if names.contains(request.name.as_str()) {
                self.postponed.insert(request.name.clone(), request);
            } else {
                requests.push(request);
            }
        }
    }

    /// The requests for repositories whose commits submodules pin. If an earlier request for a
    /// repository lacks one of these commits, the submodules or the large files, the repository is
    /// requested again with them, and its earlier result is removed. Each round adds commits, and
    /// the length of a chain of submodules is limited, so the rounds end.
    pub(super) fn new_repositories(
        &mut self,
        requests: Vec<GitRequest>,
        exclude: &[Exclusion],
    ) -> Vec<GitRequest> {
        let mut new = Vec::new();
        for request in self.merged_requests(requests, exclude) {
            if let Some(mut whole) = self.postponed.remove(&request.name) {
                if let Err(conflict) = whole.merge(&request) {
                    self.note_conflict(&request.name, &conflict);
                }
                new.push(whole);
                continue;
            }
            let Some(known) = self.repositories.get(&request.name) else {
                new.push(request);
                continue;
            };
            let has_all = request.wanted.iter().all(|one| known.wanted.contains(one));
            let has_large_files = known.lfs || !request.lfs;
            if has_all && known.submodules && has_large_files {
                continue;
            }
            let mut whole = known.clone();
            if let Err(conflict) = whole.merge(&request) {
                self.note_conflict(&request.name, &conflict);
                continue;
            }
            self.lock.git.retain(|item| item.name != request.name);
            self.results.forget(EntryKind::Git, &request.name);
            new.push(whole);
        }
        new
    }
}
