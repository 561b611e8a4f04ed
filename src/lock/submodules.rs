//! Requests for submodules of git repositories.

use super::run::LockRun;
use landfall_item::{Exclusion, GitRequest, ItemRequest};
use landfall_model::report::EntryKind;

impl LockRun<'_> {
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
