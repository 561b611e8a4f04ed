//! Tries versions: edits the manifests in memory, and checks that upstream has the items that they
//! request.

use super::first_sights::SightKey;
use super::lookups::{RequestedItem, changed_package_sets};
use super::version_ages::{AgeWait, waiting_age};
use super::versions::VersionCandidate;
use super::{RejectedVersion, UpdateRun, added_items, failed, update_checksum};
use jiff::Timestamp;
use landfall_item::manifest::{
    FileOverrides, MergedManifest, UpdatableVersion, set_version, text_of,
};
use landfall_item::{ResolveError, UpstreamStatus};
use landfall_model::report::EntryKind;
use landfall_model::{Digest, MinimumAge};

/// The manifests with versions that are tried.
pub(super) struct VersionTrial {
    edited: FileOverrides,
    manifest: MergedManifest,
    /// The items that are requested only with these versions. Their look-ups are done.
    added: Vec<RequestedItem>,
    /// The URLs of the lists that the trial replaces, with the digests of their new contents.
    lists: Vec<(String, Digest)>,
}

/// The result of looking up the content of an edit whose version waits.
pub(super) struct SeenEdit {
    /// Whether upstream has all items of the edit.
    pub(super) is_complete: bool,
    /// The time since which all contents of the edit are known; `None` if some have no digest.
    pub(super) known_since: Option<Timestamp>,
    /// Whether a transparency log has any of the contents.
    pub(super) has_log_times: bool,
}

impl UpdateRun<'_> {
    /// Moves to these versions if all of them can be used. Returns the names of the new items and
    /// of the changed sets of packages. If a version is rejected, the outcome is unchanged.
    pub(super) async fn try_versions(
        &mut self,
        moves: &[(&UpdatableVersion, &VersionCandidate)],
    ) -> Result<Vec<String>, RejectedVersion> {
        let mut edited = self.outcome.edited.clone();
        for (slot, VersionCandidate { version, .. }) in moves {
            // the values of a list variable must stay different
            if slot.others.iter().any(|other| other == version) {
                return Err(RejectedVersion::Unusable(format!(
                    "it is a value of `{}` already",
                    slot.name
                )));
            }
            let text = text_of(&slot.file, &edited)?;
            edited.insert(slot.file.clone(), set_version(&text, slot, version)?);
        }
        let trial = self.try_edit(edited).await?;
        let waiting = moves.iter().filter_map(|(slot, candidate)| {
            let age = waiting_age(slot.min_age.as_ref())?;
            (!self.ages.is_urgent(&slot.name, &candidate.version)).then_some(age)
        });
        let min_age = waiting.max();
        self.accept(trial, min_age).await
    }

    /// Loads the manifests with `edited`, and looks up the items that they request in addition.
    pub(super) async fn try_edit(
        &mut self,
        mut edited: FileOverrides,
    ) -> Result<VersionTrial, RejectedVersion> {
        let lists = self.follow_lists(&mut edited).await?;
        let manifest = self.load(&edited)?;
        let added = added_items(&self.outcome.manifest, &manifest);
        let names = added
            .iter()
            .map(|item| (item.kind, item.name.clone()))
            .collect();
        self.lookups.look_up(&manifest, &names).await;
        Ok(VersionTrial {
            edited,
            manifest,
            added,
            lists,
        })
    }

    /// Accepts the versions of `trial` if upstream has all their items and has had them for
    /// `min_age`, and all changed sets of packages can be locked. Returns the names of the new
    /// items and of the changed sets.
    pub(super) async fn accept(
        &mut self,
        mut trial: VersionTrial,
        min_age: Option<&MinimumAge>,
    ) -> Result<Vec<String>, RejectedVersion> {
        self.check_items(&trial)?;
        if let Some(min_age) = min_age
            && let Some(wait) = self.content_wait(&trial, min_age).await
        {
            return Err(RejectedVersion::Waiting(wait));
        }
        self.check_contents(&trial).await?;
        let mut has_new_digests = false;
        for item in &trial.added {
            if let Some(Ok(UpstreamStatus::Present { digest, .. })) = self.lookups.result(item) {
                has_new_digests |= update_checksum(&mut trial.edited, item, digest.as_ref())?;
            }
        }
        if has_new_digests {
            trial.manifest = self.load(&trial.edited)?;
        }
        // Solving a set may take millions of steps, so the cheaper checks come first.
        let package_sets = changed_package_sets(&self.outcome.manifest, &trial.manifest);
        let repositories = self
            .lookups
            .changed_signed_repositories(&self.outcome.manifest, &trial.manifest);
        let changed = package_sets.iter().chain(&repositories).cloned().collect();
        let solved = self
            .lookups
            .can_lock(&trial.manifest, self.request.old, &changed)
            .await;
        solved.map_err(cannot_be_locked)?;
        // a set keeps its name when its packages change, so it is not among the added items
        let changed_sets = package_sets
            .into_iter()
            .map(|(_, name)| name)
            .filter(|name| trial.added.iter().all(|item| item.name != *name));
        let names = trial.added.iter().map(|item| item.name.clone());
        let items = names.chain(changed_sets).collect();
        (self.outcome.edited, self.outcome.manifest) = (trial.edited, trial.manifest);
        Ok(items)
    }

    /// Looks up the items of an edit whose version waits, so that the age of its content counts
    /// from now on.
    pub(super) async fn see_edit(
        &mut self,
        edited: Result<FileOverrides, RejectedVersion>,
        min_age: &MinimumAge,
    ) -> SeenEdit {
        let mut known_since = None;
        let mut has_log_times = false;
        let checked = async {
            let trial = self.try_edit(edited?).await?;
            self.content_wait(&trial, min_age).await;
            known_since = self.known_since(&trial);
            let mut items = trial.added.iter();
            has_log_times = items.any(|item| self.lookups.log_time(item).is_some());
            self.check_items(&trial)
        }
        .await;
        let is_complete = checked.is_ok();
        // Reasons that prevent the update are reported when the wait is over. Failures are reported
        // now, because an item that could not be looked up may be old enough.
        if let Err(RejectedVersion::LookUpFailed(item)) = checked {
            self.outcome.failed.push(item);
        }
        SeenEdit {
            is_complete,
            known_since,
            has_log_times,
        }
    }

    /// Checks that upstream has all items of `trial`, except those whose absence the manifest
    /// accepts.
    pub(super) fn check_items(&self, trial: &VersionTrial) -> Result<(), RejectedVersion> {
        for item in &trial.added {
            let accepted = trial
                .manifest
                .missing
                .iter()
                .any(|lost| (lost.kind, &lost.name) == (item.kind, &item.name));
            match self.lookups.result(item) {
                Some(Err(cause)) => {
                    return Err(RejectedVersion::LookUpFailed(failed(
                        item.kind, &item.name, cause,
                    )));
                }
                Some(Ok(UpstreamStatus::Gone)) if !accepted => {
                    return Err(RejectedVersion::Unusable(format!(
                        "upstream does not have {} {}",
                        item.kind, item.name
                    )));
                }
                Some(Ok(_)) | None => {}
            }
        }
        Ok(())
    }

    /// Checks that the contents of the new items of `trial` can be locked: a tag may have been
    /// pushed before all its platforms, or be that of something else. Upstream must have the items.
    /// This takes a request for each image, so images that only a replaced list names are not
    /// checked.
    pub(super) async fn check_contents(
        &mut self,
        trial: &VersionTrial,
    ) -> Result<(), RejectedVersion> {
        let missing = &trial.manifest.missing;
        let names = trial
            .added
            .iter()
            .filter(|item| trial.lists.is_empty() || item.update.is_some())
            .map(|item| (item.kind, item.name.clone()))
            .filter(|(kind, name)| {
                !missing
                    .iter()
                    .any(|lost| (lost.kind, &lost.name) == (*kind, name))
            })
            .collect();
        let checked = self.lookups.check_contents(&trial.manifest, &names).await;
        checked.map_err(cannot_be_locked)
    }

    /// Returns the longest wait of the contents of `trial`. Contents that were not seen before are
    /// recorded.
    pub(super) async fn content_wait(
        &mut self,
        trial: &VersionTrial,
        min_age: &MinimumAge,
    ) -> Option<AgeWait> {
        let items = trial.added.clone();
        self.count_from_logs(&trial.manifest, items, min_age).await;
        let clock = self.clock();
        self.contents(trial)
            .into_iter()
            .filter_map(|key| self.ages.wait(key, min_age, clock))
            .max_by_key(|wait| wait.until)
    }

    /// For each digest of `items` that waits, counts the age from its time in a verified
    /// transparency log, if that time is earlier than its first sight.
    pub(super) async fn count_from_logs(
        &mut self,
        manifest: &MergedManifest,
        mut items: Vec<RequestedItem>,
        min_age: &MinimumAge,
    ) {
        let clock = self.clock();
        items.retain(|item| {
            let key = self.sight_of_digest(item);
            key.is_some_and(|key| self.ages.wait(key, min_age, clock).is_some())
        });
        let names = items.iter().map(|item| (item.kind, item.name.clone()));
        self.lookups
            .look_up_log_times(manifest, &names.collect())
            .await;
        for item in &items {
            if let (Some(key), Some(time)) =
                (self.sight_of_digest(item), self.lookups.log_time(item))
            {
                self.ages.count_from(&key, time);
            }
        }
    }

    /// The key of an item's digest in the file of first sights; `None` if no digest is known.
    fn sight_of_digest(&self, item: &RequestedItem) -> Option<SightKey> {
        match self.lookups.result(item) {
            Some(Ok(UpstreamStatus::Present { digest, .. })) => {
                Some(SightKey::new(&item.name, digest.as_ref()?.to_string()))
            }
            _ => None,
        }
    }

    /// The keys of the contents of `trial` in the file of first sights: the digests of its new
    /// items, and its lists.
    fn contents(&self, trial: &VersionTrial) -> Vec<SightKey> {
        let digests = trial
            .added
            .iter()
            .filter_map(|item| self.sight_of_digest(item));
        let lists = trial
            .lists
            .iter()
            .map(|(url, digest)| SightKey::new(url, digest.to_string()));
        digests.chain(lists).collect()
    }

    /// The time since which all contents of `trial` are known; `None` if some have no digest.
    pub(super) fn known_since(&self, trial: &VersionTrial) -> Option<Timestamp> {
        let contents = self.contents(trial);
        if contents.len() < trial.added.len() + trial.lists.len() {
            return None;
        }
        let sights: Option<Vec<Timestamp>> =
            contents.iter().map(|key| self.ages.sight(key)).collect();
        sights?.into_iter().max()
    }
}

/// Why a version is rejected if one of its items cannot be locked.
fn cannot_be_locked(((kind, name), cause): ((EntryKind, String), ResolveError)) -> RejectedVersion {
    if cause.is_temporary {
        RejectedVersion::LookUpFailed(failed(kind, name, &cause))
    } else {
        RejectedVersion::Unusable(format!("{name}: {}", cause.message))
    }
}
