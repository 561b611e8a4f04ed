//! Versions with a policy: each moves to the newest one that can be taken.

use super::asker::to_be_chosen;
use super::outcome::{HeldVersion, VersionMove};
use super::sources::{versions, written_like};
use super::state::{RejectedVersion, UpdateRun, added_wishes, failed, first_line, update_checksum};
use landfall_content::run_concurrently_by_host;
use landfall_item::manifest::{
    LoadManifestError, UpdatableVersion, set_version, text_of, updatable_versions,
};
use landfall_item::{ResolveError, UpstreamStatus, VersionSource};
use std::collections::BTreeMap;

/// A version to which one of a manifest may move.
#[derive(Debug, Clone)]
pub(super) struct VersionCandidate {
    /// The version, as it is written.
    pub(super) version: String,
    /// The source of a package that has it.
    pub(super) source: Option<String>,
}

/// Candidates, the newest first; or why there is none.
pub(super) type Candidates = Result<Vec<VersionCandidate>, ResolveError>;

impl UpdateRun<'_> {
    /// Moves every version to the newest one that can be taken.
    pub(super) async fn move_versions(&mut self) -> Result<(), LoadManifestError> {
        let mut updatable_versions = updatable_versions(self.asked.paths, &self.updated.edited)?;
        updatable_versions.retain(|slot| {
            let other = match &slot.versions {
                Ok(VersionSource::Tags(image, ..)) => image.name(),
                Ok(VersionSource::Packages(of)) => of.machine.name.clone(),
                _ => slot.name.clone(),
            };
            self.is_selected(&[&slot.name, &other])
        });
        let found = self.find_candidates(&updatable_versions).await;
        let mut rest: Vec<(&UpdatableVersion, Vec<VersionCandidate>)> = Vec::new();
        for (slot, candidates) in updatable_versions.iter().zip(found) {
            match candidates {
                Ok(candidates) => rest.push((slot, candidates)),
                Err(cause) => {
                    let name = format!("{} ({})", slot.name, slot.at);
                    self.updated.failed.push(failed(slot.kind, name, &cause));
                }
            }
        }
        for entry in rest.chunk_by(|(one, _), (other, _)| one.is_beside(other)) {
            if self.move_together(entry).await {
                continue;
            }
            let (mut alone, mut stuck) = (Vec::new(), Vec::new());
            for (slot, candidates) in entry {
                let moved = self.move_version(slot, candidates).await;
                if moved.to.is_none() && !candidates.is_empty() {
                    stuck.push((*slot, candidates.clone()));
                }
                alone.push(moved);
            }
            // what could not move alone may move with others, now that some moved
            if stuck.len() < entry.len() && self.move_together(&stuck).await {
                alone.retain(|moved| !stuck.iter().any(|(slot, _)| slot.at == moved.at));
            }
            self.updated.moves.extend(
                alone
                    .into_iter()
                    .filter(|one| one.to.is_some() || !one.held.is_empty()),
            );
        }
        Ok(())
    }

    /// What each slot may move to.
    async fn find_candidates(&self, updatable_versions: &[UpdatableVersion]) -> Vec<Candidates> {
        let found = self.find_versions(updatable_versions).await;
        let packages = self.find_packages(updatable_versions).await;
        let of = |(at, slot): (usize, &UpdatableVersion)| {
            if let Some(candidates) = packages.get(&at) {
                return candidates.clone();
            }
            let found = found[at]
                .clone()?
                .into_iter()
                .map(|version| match &slot.versions {
                    Ok(VersionSource::Document(_)) => written_like(&slot.current, &version),
                    _ => version,
                });
            let newer = slot.policy.newer(&slot.current, found);
            let newer = newer
                .map_err(|error| ResolveError::from(error.to_string()))?
                .into_iter();
            Ok(newer
                .map(|version| VersionCandidate {
                    version,
                    source: None,
                })
                .collect())
        };
        updatable_versions.iter().enumerate().map(of).collect()
    }

    /// The versions that each slot's source has. Every source is asked once.
    async fn find_versions(
        &self,
        updatable_versions: &[UpdatableVersion],
    ) -> Vec<Result<Vec<String>, ResolveError>> {
        let is_listed = |from: &&VersionSource| !matches!(from, VersionSource::Packages(_));
        let sources: BTreeMap<String, &VersionSource> = updatable_versions
            .iter()
            .filter_map(|slot| slot.versions.as_ref().ok().filter(is_listed))
            .map(|from| (format!("{from:?}"), from))
            .collect();
        let sources: Vec<(&String, &&VersionSource)> = sources.iter().collect();
        let resolver = self.asker.resolver;
        let host = |at: usize| match sources[at] {
            (_, VersionSource::Tags(image, ..)) => image.registry.clone(),
            (source, _) => source.clone(),
        };
        let at_once = resolver.limits().jobs;
        let asking = run_concurrently_by_host(sources.len(), at_once, host, async |at: usize| {
            (
                sources[at].0.clone(),
                versions(resolver, sources[at].1).await,
            )
        });
        let found: BTreeMap<String, _> = asking.await.into_iter().collect();
        let of = |slot: &UpdatableVersion| match &slot.versions {
            Ok(from) if is_listed(&from) => found
                .get(&format!("{from:?}"))
                .cloned()
                .unwrap_or_else(|| Ok(Vec::new())),
            Ok(_) => Ok(Vec::new()),
            Err(why) => Err(ResolveError::from(why.as_str())),
        };
        updatable_versions.iter().map(of).collect()
    }

    /// Moves these versions of one entry to the newest at once, if there are several: packages may
    /// need each other in one version. Returns whether that is done.
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
        let Ok(items) = self.take(&newest).await else {
            return false;
        };
        for (slot, candidate) in newest {
            let moved = VersionMove {
                items: items.clone(),
                ..stays(slot)
            };
            self.updated.moves.push(to(moved, candidate));
        }
        true
    }

    /// Moves one version to the first of `candidates` that can be taken, of the newest ones: a
    /// source may list any number, and each costs requests.
    async fn move_version(
        &mut self,
        slot: &UpdatableVersion,
        candidates: &[VersionCandidate],
    ) -> VersionMove {
        let mut moved = stays(slot);
        let most = self.asker.resolver.limits().candidates;
        for (tried, candidate) in candidates.iter().enumerate() {
            if tried == most {
                let left = candidates.len() - tried;
                let why =
                    format!("not tried, as the {most} newest cannot be taken ({left} are left)");
                moved.held.push(HeldVersion {
                    version: candidate.version.clone(),
                    why,
                });
                break;
            }
            match self.take(&[(slot, candidate)]).await {
                Ok(items) => {
                    moved = to(VersionMove { items, ..moved }, candidate);
                    break;
                }
                Err(RejectedVersion::Held(why)) => {
                    moved.held.push(HeldVersion {
                        version: candidate.version.clone(),
                        why,
                    });
                }
                Err(RejectedVersion::Unasked(item)) => {
                    self.updated.failed.push(item);
                    break;
                }
            }
        }
        moved
    }

    /// Takes these versions, if upstream has all items that use them. Returns the items that are
    /// new.
    async fn take(
        &mut self,
        moves: &[(&UpdatableVersion, &VersionCandidate)],
    ) -> Result<Vec<String>, RejectedVersion> {
        let told = |error: LoadManifestError| RejectedVersion::Held(first_line(&error));
        let mut edited = self.updated.edited.clone();
        for (slot, VersionCandidate { version, .. }) in moves {
            if slot.others.iter().any(|other| other == version) {
                return Err(RejectedVersion::Held(format!(
                    "it is a value of `{}` already",
                    slot.name
                )));
            }
            let text = text_of(&slot.file, &edited).map_err(told)?;
            edited.insert(slot.file.clone(), set_version(&text, slot, version)?);
        }
        self.follow_lists(&mut edited).await?;
        let mut wanted = self.load(&edited).map_err(told)?;
        let fresh = added_wishes(&self.updated.wanted, &wanted);
        let names = fresh
            .iter()
            .map(|wish| (wish.kind, wish.name.clone()))
            .collect();
        self.asker.ask(&wanted, &names).await;
        let mut has_digests = false;
        for wish in &fresh {
            let accepted = wanted
                .missing
                .iter()
                .any(|lost| (lost.kind, &lost.name) == (wish.kind, &wish.name));
            match self.asker.answer(wish) {
                Some(Err(cause)) => {
                    return Err(RejectedVersion::Unasked(failed(
                        wish.kind, &wish.name, cause,
                    )));
                }
                Some(Ok(UpstreamStatus::Gone)) if !accepted => {
                    return Err(RejectedVersion::Held(format!(
                        "upstream does not have {} {}",
                        wish.kind, wish.name
                    )));
                }
                Some(Ok(UpstreamStatus::Present { digest, .. })) => {
                    has_digests |= update_checksum(&mut edited, wish, digest.as_ref())?;
                }
                Some(Ok(UpstreamStatus::Gone)) | None => {}
            }
        }
        if has_digests {
            wanted = self.load(&edited).map_err(told)?;
        }
        let chosen = to_be_chosen(&self.updated.wanted, &wanted);
        let tried = self.asker.can_lock(&wanted, self.asked.old, &chosen).await;
        tried.map_err(|((kind, name), cause)| {
            if cause.is_passing {
                RejectedVersion::Unasked(failed(kind, name, &cause))
            } else {
                RejectedVersion::Held(format!("{name}: {}", cause.told))
            }
        })?;
        let chosen = chosen
            .into_iter()
            .filter(|name| !names.contains(name))
            .map(|(_, name)| name);
        let items = fresh
            .into_iter()
            .map(|wish| wish.name)
            .chain(chosen)
            .collect();
        (self.updated.edited, self.updated.wanted) = (edited, wanted);
        Ok(items)
    }
}

/// A version that does not move.
fn stays(slot: &UpdatableVersion) -> VersionMove {
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

/// The same, moved.
fn to(moved: VersionMove, candidate: &VersionCandidate) -> VersionMove {
    VersionMove {
        to: Some(candidate.version.clone()),
        source: candidate.source.clone(),
        ..moved
    }
}
