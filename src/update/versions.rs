//! Moves each version that has an update policy to the newest one that can be used.

use super::sources::{in_form_of, versions};
use super::version_ages::waiting_age;
use super::{HeldVersion, RejectedVersion, UpdateRun, VersionMove, WaitingVersion, failed};
use landfall_content::run_concurrently_by_host;
use landfall_item::manifest::{
    FileOverrides, KeptVersions, LoadManifestError, UpdatableVersion, set_versions, text_of,
    updatable_versions,
};
use landfall_item::{ResolveError, VersionSource};
use std::collections::BTreeMap;

/// A version to which a version of a manifest may move.
#[derive(Debug, Clone)]
pub(super) struct VersionCandidate {
    /// The version in the form that is written to the manifest.
    pub(super) version: String,
    /// For a package: the source that offers the version.
    pub(super) source: Option<String>,
}

/// The versions that may be used, the newest first, or the reason why they are unknown.
pub(super) type VersionCandidates = Result<Vec<VersionCandidate>, ResolveError>;

impl UpdateRun<'_> {
    /// Moves every version to the newest one that can be used.
    pub(super) async fn move_versions(&mut self) -> Result<(), LoadManifestError> {
        let mut slots = updatable_versions(self.request.paths, &self.outcome.edited)?;
        for slot in &slots {
            self.ages.keep_sights_for(slot.min_age.as_ref());
        }
        slots.retain(|slot| {
            // `--only` may name the variable, or the image or machine that uses it
            let user = match &slot.versions {
                Ok(VersionSource::Tags { image, .. }) => image.name(),
                Ok(VersionSource::Packages(versions)) => versions.machine.name.clone(),
                _ => slot.name.clone(),
            };
            self.is_selected(&[&slot.name, &user])
        });
        let found = self.find_candidates(&slots).await;
        let mut movable: Vec<(&UpdatableVersion, Vec<VersionCandidate>)> = Vec::new();
        let mut waiting = Vec::new();
        let mut kept_slots = Vec::new();
        for (slot, candidates) in slots.iter().zip(found) {
            match candidates {
                Ok(candidates) => match &slot.kept {
                    Some(kept) => kept_slots.push((slot, kept, candidates)),
                    None => {
                        let aged = self.split_by_age(slot, candidates).await;
                        movable.push((slot, aged.ready));
                        waiting.push((slot, aged.waiting));
                    }
                },
                Err(cause) => {
                    let name = format!("{} ({})", slot.name, slot.at);
                    self.outcome.failed.push(failed(slot.kind, name, &cause));
                }
            }
        }
        let mut kept_entries = Vec::new();
        for (slot, kept, candidates) in kept_slots {
            let found: Vec<String> = candidates.into_iter().map(|one| one.version).collect();
            if kept.is_of_entries() {
                kept_entries.push((slot, found));
            } else {
                self.move_kept(slot, kept, found).await;
            }
        }
        self.move_entries(&movable).await;
        // entries with `keep` are last, because their moves change the positions of other entries
        for (slot, found) in kept_entries {
            self.move_kept_entries(slot, found).await?;
        }
        for (slot, waiting) in waiting {
            self.add_waiting(slot, waiting);
        }
        Ok(())
    }

    /// Moves the versions of each entry, together if possible.
    async fn move_entries(&mut self, movable: &[(&UpdatableVersion, Vec<VersionCandidate>)]) {
        for entry in movable.chunk_by(|(one, _), (other, _)| one.is_beside(other)) {
            if self.move_together(entry).await {
                continue;
            }
            let mut moves = Vec::new();
            let mut stuck = Vec::new();
            for (slot, candidates) in entry {
                let moved = self.move_version(slot, candidates).await;
                if moved.to.is_none() && !candidates.is_empty() {
                    stuck.push((*slot, candidates.clone()));
                }
                moves.push(moved);
            }
            // Versions that could not move separately may move together, now that other versions of
            // the entry have moved. If none has moved, this would repeat the attempt that failed
            // above.
            let has_moved = moves.iter().any(|moved| moved.to.is_some());
            if has_moved && self.move_together(&stuck).await {
                moves.retain(|moved| !stuck.iter().any(|(slot, _)| slot.at == moved.at));
            }
            self.outcome.moves.extend(
                moves.into_iter().filter(|one| {
                    one.to.is_some() || !one.held.is_empty() || !one.waiting.is_empty()
                }),
            );
        }
    }

    /// The versions to which each slot may move.
    async fn find_candidates(&self, slots: &[UpdatableVersion]) -> Vec<VersionCandidates> {
        let versions = self.find_versions(slots).await;
        let mut packages = self.find_packages(slots).await;
        slots
            .iter()
            .zip(versions)
            .enumerate()
            .map(|(at, (slot, versions))| {
                packages
                    .remove(&at)
                    .unwrap_or_else(|| newer_versions(slot, versions?))
            })
            .collect()
    }

    /// The versions that each slot's source lists. Slots with the same source share its requests.
    async fn find_versions(
        &self,
        slots: &[UpdatableVersion],
    ) -> Vec<Result<Vec<String>, ResolveError>> {
        let is_listed = |from: &&VersionSource| !matches!(from, VersionSource::Packages(_));
        let sources: BTreeMap<String, &VersionSource> = slots
            .iter()
            .filter_map(|slot| slot.versions.as_ref().ok().filter(is_listed))
            .map(|from| (format!("{from:?}"), from))
            .collect();
        let sources: Vec<(&String, &&VersionSource)> = sources.iter().collect();
        let resolver = self.lookups.resolver;
        let host = |at: usize| match sources[at] {
            (_, VersionSource::Tags { image, .. }) => image.registry.clone(),
            (source, _) => source.clone(),
        };
        let limit = resolver.limits().jobs;
        let requests = run_concurrently_by_host(sources.len(), limit, host, async |at: usize| {
            (
                sources[at].0.clone(),
                versions(resolver, sources[at].1).await,
            )
        });
        let found: BTreeMap<String, _> = requests.await.into_iter().collect();
        slots
            .iter()
            .map(|slot| match &slot.versions {
                Ok(from) if is_listed(&from) => found
                    .get(&format!("{from:?}"))
                    .cloned()
                    .unwrap_or_else(|| Ok(Vec::new())),
                Ok(_) => Ok(Vec::new()),
                Err(why) => Err(ResolveError::from(why.as_str())),
            })
            .collect()
    }

    /// Moves these versions of one entry to their newest candidates at once, if there are several:
    /// packages may require each other in the same version. Returns whether they moved.
    async fn move_together(
        &mut self,
        entry: &[(&UpdatableVersion, Vec<VersionCandidate>)],
    ) -> bool {
        let newest: Vec<(&UpdatableVersion, &VersionCandidate)> = entry
            .iter()
            .filter_map(|(slot, candidates)| Some((*slot, candidates.first()?)))
            .collect();
        if newest.len() < 2 {
            return false;
        }
        let Ok(items) = self.try_versions(&newest).await else {
            return false;
        };
        for (slot, candidate) in newest {
            let moved = VersionMove {
                items: items.clone(),
                ..unmoved(slot)
            };
            self.outcome.moves.push(moved_to(moved, candidate));
        }
        true
    }

    /// Moves one version to the first of `candidates` that can be used. Only the newest are tried:
    /// a source may list any number, and each one costs requests.
    async fn move_version(
        &mut self,
        slot: &UpdatableVersion,
        candidates: &[VersionCandidate],
    ) -> VersionMove {
        let mut moved = unmoved(slot);
        let limit = self.lookups.resolver.limits().candidates;
        for (tried, candidate) in candidates.iter().enumerate() {
            if tried == limit {
                let left = candidates.len() - tried;
                let why = format!("not tried: the {limit} newest cannot be used ({left} remain)");
                moved.held.push(HeldVersion {
                    version: candidate.version.clone(),
                    why,
                });
                break;
            }
            match self.try_versions(&[(slot, candidate)]).await {
                Ok(items) => {
                    moved = moved_to(VersionMove { items, ..moved }, candidate);
                    break;
                }
                Err(rejected) => {
                    if !self.reject(&candidate.version, rejected, &mut moved) {
                        break;
                    }
                }
            }
        }
        moved
    }

    /// Adds the reason why `version` is not used to `moved`, or to the failed items. Returns whether
    /// a lower version may be used instead: not if nothing is known about this one.
    fn reject(&mut self, version: &str, why: RejectedVersion, moved: &mut VersionMove) -> bool {
        match why {
            RejectedVersion::Unusable(why) => {
                let version = version.to_owned();
                moved.held.push(HeldVersion { version, why });
            }
            RejectedVersion::Waiting(wait) => {
                moved.waiting.push(WaitingVersion::new(version, wait));
            }
            RejectedVersion::LookUpFailed(item) => {
                self.outcome.failed.push(item);
                return false;
            }
        }
        true
    }
}

/// The versions of a source that the policy of `slot` allows, the newest first.
fn newer_versions(slot: &UpdatableVersion, versions: Vec<String>) -> VersionCandidates {
    // the versions of a list with `keep` are chosen together, by `move_kept`
    if slot.kept.is_some() {
        return Ok(versions.into_iter().map(listed).collect());
    }
    let versions = versions
        .into_iter()
        .map(|version| in_form_of(&slot.current, &slot.versions, version));
    let newer = slot
        .policy
        .newer(&slot.current, versions)
        .map_err(|error| ResolveError::from(error.to_string()))?;
    Ok(newer.into_iter().map(listed).collect())
}

/// A version that a source lists.
fn listed(version: String) -> VersionCandidate {
    VersionCandidate {
        version,
        source: None,
    }
}

/// The report of a version that does not move.
pub(super) fn unmoved(slot: &UpdatableVersion) -> VersionMove {
    VersionMove {
        name: slot.name.clone(),
        at: slot.at.clone(),
        policy: slot.written.clone(),
        from: slot.current.clone(),
        to: None,
        source: None,
        items: Vec::new(),
        held: Vec::new(),
        waiting: Vec::new(),
    }
}

fn moved_to(moved: VersionMove, candidate: &VersionCandidate) -> VersionMove {
    VersionMove {
        to: Some(candidate.version.clone()),
        source: candidate.source.clone(),
        ..moved
    }
}

impl UpdateRun<'_> {
    /// Like [`UpdateRun::move_kept`], for an item whose versions are in entries of their own. Reads
    /// their positions again, because other moves may have added or removed entries before them.
    pub(super) async fn move_kept_entries(
        &mut self,
        slot: &UpdatableVersion,
        found: Vec<String>,
    ) -> Result<(), LoadManifestError> {
        let slots = updatable_versions(self.request.paths, &self.outcome.edited)?;
        let present = slots.into_iter().find(|one| {
            one.kept.is_some()
                && (&one.file, one.kind, &one.name) == (&slot.file, slot.kind, &slot.name)
        });
        let Some(mut present) = present else {
            return Ok(());
        };
        // a report shows the position in the file on disk
        present.at = slot.at.clone();
        if let Some(kept) = &present.kept {
            self.move_kept(&present, kept, found).await;
        }
        Ok(())
    }

    /// Moves the versions of a variable or item. For each of the newest release lines, chooses the
    /// newest version in `found` that can be used.
    pub(super) async fn move_kept(
        &mut self,
        slot: &UpdatableVersion,
        kept: &KeptVersions,
        found: Vec<String>,
    ) {
        if let Some(selection) = &slot.selection {
            let lines = selection.newest(found).into_iter().map(|one| vec![one]);
            return self.take_newest(slot, kept, lines.collect()).await;
        }
        let newest = kept.values.last().map_or("", String::as_str);
        let found = found
            .into_iter()
            .map(|version| in_form_of(newest, &slot.versions, version));
        let lines = match slot.policy.release_lines(&kept.values, found) {
            Ok(lines) => lines,
            Err(error) => {
                let name = format!("{} ({})", slot.name, slot.at);
                let cause = ResolveError::from(error.to_string());
                self.outcome.failed.push(failed(slot.kind, name, &cause));
                return;
            }
        };
        self.take_newest(slot, kept, lines).await;
    }

    /// Takes the newest version that can be used of each of the first lines in `lines`.
    async fn take_newest(
        &mut self,
        slot: &UpdatableVersion,
        kept: &KeptVersions,
        lines: Vec<Vec<String>>,
    ) {
        let mut moved = unmoved(slot);
        let mut chosen: Vec<String> = Vec::new();
        let mut tried = 0;
        // a rule names the number of versions itself
        let most = self.lookups.resolver.limits().candidates;
        let most = match slot.selection {
            Some(_) => most.saturating_add(kept.count),
            None => most,
        };
        for line in lines {
            if chosen.len() == kept.count {
                break;
            }
            for version in line {
                // a present value needs no check, and ends its line
                if kept.values.contains(&version) {
                    chosen.push(version);
                    break;
                }
                if tried == most {
                    continue;
                }
                tried += 1;
                match self.try_kept(slot, &chosen, &version).await {
                    Ok(()) => {
                        chosen.push(version);
                        break;
                    }
                    Err(rejected) => {
                        if !self.reject(&version, rejected, &mut moved) {
                            return;
                        }
                    }
                }
            }
        }
        // a descending list stays descending, and so does a selection; every other list becomes
        // ascending
        if slot.selection.is_none() && !slot.policy.is_descending(&kept.values) {
            chosen.reverse();
        }
        let selects_nothing = slot.selection.is_some() && chosen.is_empty();
        if selects_nothing && moved.waiting.is_empty() {
            let why = format!("no version matches `select: {}`", slot.written);
            let name = format!("{} ({})", slot.name, slot.at);
            let failed = failed(slot.kind, name, &ResolveError::from(why));
            self.outcome.failed.push(failed);
        } else if !selects_nothing && chosen != kept.values {
            self.take_kept(slot, &chosen, &mut moved).await;
        }
        if moved.to.is_some() || !moved.held.is_empty() || !moved.waiting.is_empty() {
            self.outcome.moves.push(moved);
        }
    }

    /// Checks that upstream has all items of `version`, and has had them for the minimum age unless
    /// the version is urgent.
    async fn try_kept(
        &mut self,
        slot: &UpdatableVersion,
        chosen: &[String],
        version: &str,
    ) -> Result<(), RejectedVersion> {
        let min_age = waiting_age(slot.min_age.as_ref());
        let mut wait = min_age.and_then(|min_age| self.version_wait(slot, version, min_age));
        let list: Vec<String> = chosen.iter().cloned().chain([version.to_owned()]).collect();
        let edited = self.edited(slot, |text| set_versions(text, slot, &list))?;
        let trial = self.try_edit(edited).await?;
        let mut content = None;
        // the content is looked up even while the version waits, so that its age counts from now on
        if let Some(min_age) = min_age {
            content = self.content_wait(&trial, min_age).await;
            self.count_version_from(slot, version, self.known_since(&trial));
            wait = wait.and_then(|_| self.version_wait(slot, version, min_age));
        }
        let is_urgent = self.ages.is_urgent(&slot.name, version);
        if let Some(wait) = wait.or(content.filter(|_| !is_urgent)) {
            return Err(RejectedVersion::Waiting(wait));
        }
        self.check_items(&trial)?;
        self.check_contents(&trial).await
    }

    /// Accepts the list `chosen`, if it can be written to the manifest and locked.
    async fn take_kept(
        &mut self,
        slot: &UpdatableVersion,
        chosen: &[String],
        moved: &mut VersionMove,
    ) {
        let taken = async {
            let edited = self.edited(slot, |text| set_versions(text, slot, chosen))?;
            let trial = self.try_edit(edited).await?;
            // `try_kept` has checked the minimum age of each new version
            self.accept(trial, None).await
        }
        .await;
        match taken {
            Ok(items) => {
                moved.items = items;
                moved.to = Some(chosen.join(", "));
            }
            Err(rejected) => {
                self.reject(&chosen.join(", "), rejected, moved);
            }
        }
    }

    /// The edited manifests, in which `set` also edits the text of the one that has `slot`.
    pub(super) fn edited(
        &self,
        slot: &UpdatableVersion,
        set: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<FileOverrides, RejectedVersion> {
        let mut edited = self.outcome.edited.clone();
        let text = text_of(&slot.file, &edited)?;
        edited.insert(slot.file.clone(), set(&text)?);
        Ok(edited)
    }
}
