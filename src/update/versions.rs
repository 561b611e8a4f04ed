//! Moves each version that has an update policy to the newest one that can be used.

use super::lookups::changed_package_sets;
use super::outcome::{HeldVersion, VersionMove};
use super::sources::{versions, written_like};
use super::state::{RejectedVersion, UpdateRun, added_items, failed, update_checksum};
use landfall_content::run_concurrently_by_host;
use landfall_item::manifest::{
    LoadManifestError, UpdatableVersion, set_version, text_of, updatable_versions,
};
use landfall_item::{ResolveError, UpstreamStatus, VersionSource};
use std::collections::BTreeMap;

/// A version to which a version of a manifest may move.
#[derive(Debug, Clone)]
pub(super) struct VersionCandidate {
    /// The version in the form that is written to the manifest.
    pub(super) version: String,
    /// For a package: the source that offers the version.
    pub(super) source: Option<String>,
}

/// The versions that may be taken, the newest first, or the reason why they are unknown.
pub(super) type VersionCandidates = Result<Vec<VersionCandidate>, ResolveError>;

impl UpdateRun<'_> {
    /// Moves every version to the newest one that can be used.
    pub(super) async fn move_versions(&mut self) -> Result<(), LoadManifestError> {
        let mut slots = updatable_versions(self.request.paths, &self.outcome.edited)?;
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
        for (slot, candidates) in slots.iter().zip(found) {
            match candidates {
                Ok(candidates) => movable.push((slot, candidates)),
                Err(cause) => {
                    let name = format!("{} ({})", slot.name, slot.at);
                    self.outcome.failed.push(failed(slot.kind, name, &cause));
                }
            }
        }
        for entry in movable.chunk_by(|(one, _), (other, _)| one.is_beside(other)) {
            if self.move_together(entry).await {
                continue;
            }
            let (mut moves, mut stuck) = (Vec::new(), Vec::new());
            for (slot, candidates) in entry {
                let moved = self.move_version(slot, candidates).await;
                if moved.to.is_none() && !candidates.is_empty() {
                    stuck.push((*slot, candidates.clone()));
                }
                moves.push(moved);
            }
            // Versions that could not move separately may move together, now that others have
            // moved. If none moved, this would be the attempt that failed above.
            if stuck.len() < entry.len() && self.move_together(&stuck).await {
                moves.retain(|moved| !stuck.iter().any(|(slot, _)| slot.at == moved.at));
            }
            self.outcome.moves.extend(
                moves
                    .into_iter()
                    .filter(|one| one.to.is_some() || !one.held.is_empty()),
            );
        }
        Ok(())
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
                let why =
                    format!("not tried, as the {limit} newest cannot be used ({left} remain)");
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
                Err(RejectedVersion::Unusable(why)) => {
                    moved.held.push(HeldVersion {
                        version: candidate.version.clone(),
                        why,
                    });
                }
                Err(RejectedVersion::LookUpFailed(item)) => {
                    self.outcome.failed.push(item);
                    break;
                }
            }
        }
        moved
    }

    /// Moves to these versions if upstream has all items that use them. Returns the names of the
    /// new items. If a version is rejected, the outcome is unchanged.
    async fn try_versions(
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
        self.follow_lists(&mut edited).await?;
        let mut manifest = self.load(&edited)?;
        let added = added_items(&self.outcome.manifest, &manifest);
        let names = added
            .iter()
            .map(|item| (item.kind, item.name.clone()))
            .collect();
        self.lookups.look_up(&manifest, &names).await;
        let mut has_new_digests = false;
        for item in &added {
            let accepted = manifest
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
                Some(Ok(UpstreamStatus::Present { digest, .. })) => {
                    has_new_digests |= update_checksum(&mut edited, item, digest.as_ref())?;
                }
                Some(Ok(UpstreamStatus::Gone)) | None => {}
            }
        }
        if has_new_digests {
            manifest = self.load(&edited)?;
        }
        // Solving a set may take millions of steps, so the cheaper checks come first.
        let package_sets = changed_package_sets(&self.outcome.manifest, &manifest);
        let solved = self
            .lookups
            .can_lock(&manifest, self.request.old, &package_sets)
            .await;
        solved.map_err(|((kind, name), cause)| {
            if cause.is_temporary {
                RejectedVersion::LookUpFailed(failed(kind, name, &cause))
            } else {
                RejectedVersion::Unusable(format!("{name}: {}", cause.message))
            }
        })?;
        // a set keeps its name when its packages change, so it is not among the added items
        let changed_sets = package_sets
            .into_iter()
            .filter(|name| !names.contains(name))
            .map(|(_, name)| name);
        let items = added
            .into_iter()
            .map(|item| item.name)
            .chain(changed_sets)
            .collect();
        (self.outcome.edited, self.outcome.manifest) = (edited, manifest);
        Ok(items)
    }
}

/// The versions of a source that the policy of `slot` allows, the newest first.
fn newer_versions(slot: &UpdatableVersion, versions: Vec<String>) -> VersionCandidates {
    let versions = versions.into_iter().map(|version| match &slot.versions {
        Ok(VersionSource::Document(_)) => written_like(&slot.current, &version),
        // a tag or chart version exists only as it is written
        _ => version,
    });
    let newer = slot
        .policy
        .newer(&slot.current, versions)
        .map_err(|error| ResolveError::from(error.to_string()))?;
    Ok(newer
        .into_iter()
        .map(|version| VersionCandidate {
            version,
            source: None,
        })
        .collect())
}

/// The report of a version that does not move.
fn unmoved(slot: &UpdatableVersion) -> VersionMove {
    VersionMove {
        name: slot.name.clone(),
        at: slot.at.clone(),
        policy: slot.written.clone(),
        from: slot.current.clone(),
        to: None,
        source: None,
        items: Vec::new(),
        held: Vec::new(),
    }
}

fn moved_to(moved: VersionMove, candidate: &VersionCandidate) -> VersionMove {
    VersionMove {
        to: Some(candidate.version.clone()),
        source: candidate.source.clone(),
        ..moved
    }
}
