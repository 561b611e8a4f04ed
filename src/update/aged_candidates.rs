//! Separates the candidates that are old enough from those that wait for their minimum age.

use super::first_sights::SightKey;
use super::outcome::WaitingVersion;
use super::state::{RejectedVersion, UpdateRun};
use super::trial::SeenEdit;
use super::version_ages::AgeWait;
use super::versions::{VersionCandidate, unmoved};
use jiff::Timestamp;
use landfall_item::VersionSource;
use landfall_item::manifest::{UpdatableVersion, set_version, text_of};
use landfall_model::MinimumAge;
use landfall_model::document::VersionsFrom;

/// The candidates for a version in a manifest, separated by their age.
pub(super) struct AgedCandidates {
    /// The candidates that can be used, the newest first.
    pub(super) ready: Vec<VersionCandidate>,
    /// The candidates that wait. They are newer than those in `ready`.
    pub(super) waiting: Vec<WaitingVersion>,
}

impl UpdateRun<'_> {
    /// Separates `candidates` by the minimum age of `slot`. Records when a candidate is seen for
    /// the first time.
    pub(super) async fn split_by_age(
        &mut self,
        slot: &UpdatableVersion,
        candidates: Vec<VersionCandidate>,
    ) -> AgedCandidates {
        let mut aged = AgedCandidates {
            ready: Vec::new(),
            waiting: Vec::new(),
        };
        let Some(min_age) = slot.min_age.clone().filter(|age| !age.is_zero()) else {
            aged.ready = candidates;
            return aged;
        };
        let mut first_seen = FirstSightOfNewer::default();
        let mut has_log_times = false;
        for candidate in candidates {
            let Some(wait) = self.version_wait(slot, &candidate.version, &min_age) else {
                aged.ready.push(candidate);
                continue;
            };
            // If a newer version is ready, it is used, and the candidate is not reported. If a
            // newer version was first seen no later than the candidate, it will be ready no later
            // than the candidate. The candidate's items are then looked up only if transparency
            // logs have items of a newer version: the logs may have had the candidate's items even
            // longer.
            let is_later = first_seen.is_before(wait);
            if !aged.ready.is_empty() || is_later && !has_log_times {
                continue;
            }
            let seen = self.see_items(slot, &candidate, &min_age).await;
            has_log_times |= seen.has_log_times;
            self.count_version_from(slot, &candidate.version, seen.known_since);
            let Some(wait) = self.version_wait(slot, &candidate.version, &min_age) else {
                aged.ready.push(candidate);
                continue;
            };
            if first_seen.is_before(wait) {
                continue;
            }
            if seen.is_complete {
                first_seen.0 = Some(wait.first_seen);
            }
            aged.waiting
                .push(WaitingVersion::new(&candidate.version, wait));
        }
        aged
    }

    /// Returns the wait of a version; `None` if it can be used.
    pub(super) fn version_wait(
        &mut self,
        slot: &UpdatableVersion,
        version: &str,
        min_age: &MinimumAge,
    ) -> Option<AgeWait> {
        let key = self.sight_of_version(slot, version)?;
        let clock = self.clock();
        // The first sight is recorded even if the version is urgent, because the next run may not
        // name it as urgent any more.
        let wait = self.ages.wait(key, min_age, clock);
        if self.ages.is_urgent(&slot.name, version) {
            return None;
        }
        wait
    }

    /// Counts the age of a version from `known_since`, the time since which all its contents are
    /// known, if that is before its first sight. Transparency logs can give such earlier times.
    pub(super) fn count_version_from(
        &mut self,
        slot: &UpdatableVersion,
        version: &str,
        known_since: Option<Timestamp>,
    ) {
        if let (Some(key), Some(time)) = (self.sight_of_version(slot, version), known_since) {
            self.ages.count_from(&key, time);
        }
    }

    /// Looks up the items of a version that waits, so that the age of its content counts from now
    /// on.
    async fn see_items(
        &mut self,
        slot: &UpdatableVersion,
        candidate: &VersionCandidate,
        min_age: &MinimumAge,
    ) -> SeenEdit {
        // the content of a package needs no age of its own: its repository is signed
        if matches!(slot.versions, Ok(VersionSource::Packages(_))) {
            return SeenEdit {
                is_complete: true,
                known_since: None,
                has_log_times: false,
            };
        }
        let edited = text_of(&slot.file, &self.outcome.edited)
            .map_err(RejectedVersion::from)
            .and_then(|text| Ok(set_version(&text, slot, &candidate.version)?))
            .map(|text| {
                let mut edited = self.outcome.edited.clone();
                edited.insert(slot.file.clone(), text);
                edited
            });
        self.see_edit(edited, min_age).await
    }

    /// Adds versions that wait to the report of `slot`, before the waiting versions that the report
    /// already contains.
    pub(super) fn add_waiting(&mut self, slot: &UpdatableVersion, waiting: Vec<WaitingVersion>) {
        if waiting.is_empty() {
            return;
        }
        let known = self
            .outcome
            .moves
            .iter_mut()
            .find(|moved| moved.at == slot.at);
        match known {
            Some(moved) => moved.waiting.splice(0..0, waiting).for_each(drop),
            None => {
                let mut moved = unmoved(slot);
                moved.waiting = waiting;
                self.outcome.moves.push(moved);
            }
        }
    }

    /// The key of a version of `slot` in the file of first sights; `None` if its source is unknown.
    fn sight_of_version(&self, slot: &UpdatableVersion, version: &str) -> Option<SightKey> {
        let key = match slot.versions.as_ref().ok()? {
            VersionSource::Tags {
                image,
                before,
                after,
            } => SightKey::new(image.name(), [before, version, after].concat()),
            // a tag that is moved by force is new: the date of its commit is only a claim
            VersionSource::GitTags(url) => match self.lookups.resolver.git_tag(url, version) {
                Some(object) => SightKey::new(url, format!("{version}@{object}")),
                None => SightKey::new(url, version),
            },
            VersionSource::Provider(address) => SightKey::new(address.to_string(), version),
            VersionSource::Packages(found) => SightKey::new(
                format!("{}:{}", found.machine.name, found.package),
                [&found.before, version, &found.after].concat(),
            ),
            VersionSource::Chart(from) | VersionSource::Document(VersionsFrom::Chart(from)) => {
                let repository = from.repo.trim_end_matches('/');
                SightKey::new(format!("{repository}/{}", from.chart), version)
            }
            VersionSource::Document(VersionsFrom::Text(url)) => SightKey::new(url, version),
            VersionSource::Document(VersionsFrom::Json(from)) => {
                SightKey::new(format!("{}#{}", from.url, from.path), version)
            }
        };
        Some(key)
    }
}

/// The earliest first sight of the newer versions that can be used when they are old enough.
#[derive(Default)]
struct FirstSightOfNewer(Option<Timestamp>);

impl FirstSightOfNewer {
    fn is_before(&self, wait: AgeWait) -> bool {
        self.0.is_some_and(|newer| newer <= wait.first_seen)
    }
}
