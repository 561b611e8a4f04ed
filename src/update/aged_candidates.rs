//! Separates the candidates that are old enough, or named as urgent, from those that wait for their
//! minimum age, and tells the time for that.

use super::first_sights::SightKey;
use super::trial::SeenEdit;
use super::version_ages::{AgeWait, waiting_age};
use super::versions::{VersionCandidate, unmoved};
use super::{UpdateRun, WaitingVersion};
use jiff::{SignedDuration, SignedDurationRound, Timestamp, Unit};
use landfall_item::VersionSource;
use landfall_item::manifest::{UpdatableVersion, set_version};
use landfall_model::MinimumAge;
use landfall_model::document::VersionsFrom;
use std::str::FromStr;

/// The candidates for a version in a manifest, separated by their age.
#[derive(Default)]
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
        let mut aged = AgedCandidates::default();
        let Some(min_age) = waiting_age(slot.min_age.as_ref()) else {
            aged.ready = candidates;
            return aged;
        };
        // the earliest first sight of the newer versions that can be used when they are old enough
        let mut first_seen: Option<Timestamp> = None;
        let mut has_log_times = false;
        for candidate in candidates {
            let Some(wait) = self.version_wait(slot, &candidate.version, min_age) else {
                aged.ready.push(candidate);
                continue;
            };
            // If a newer version is ready, it is used, and the candidate is not reported. If a
            // newer version was first seen no later than the candidate, it will be ready no later
            // than the candidate. The candidate's items are then looked up only if transparency
            // logs have items of a newer version: the logs may have had the candidate's items even
            // longer.
            let is_later = first_seen.is_some_and(|newer| newer <= wait.first_seen);
            if !aged.ready.is_empty() || is_later && !has_log_times {
                continue;
            }
            let seen = self.see_items(slot, &candidate, min_age).await;
            has_log_times |= seen.has_log_times;
            self.count_version_from(slot, &candidate.version, seen.known_since);
            let Some(wait) = self.version_wait(slot, &candidate.version, min_age) else {
                aged.ready.push(candidate);
                continue;
            };
            if first_seen.is_some_and(|newer| newer <= wait.first_seen) {
                continue;
            }
            if seen.is_complete {
                first_seen = Some(wait.first_seen);
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
        self.wait_unless_urgent(key, &slot.name, version, min_age)
    }

    /// Returns the wait of `key`, a version or digest of `name`; `None` if it is urgent or old
    /// enough. An urgent one is marked as used even if it is old enough.
    pub(super) fn wait_unless_urgent(
        &mut self,
        key: SightKey,
        name: &str,
        version: &str,
        min_age: &MinimumAge,
    ) -> Option<AgeWait> {
        let clock = self.clock();
        // The first sight is recorded even if the version is urgent, because the next run may not
        // name it as urgent any more.
        let wait = self.ages.wait(key, min_age, clock);
        if self.ages.is_urgent(name, version) {
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
        let edited = self.edited(slot, |text| set_version(text, slot, &candidate.version));
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

// The current time for the minimum ages of versions. Two clocks determine it, so that a wrong
// clock does not end a wait too early.

/// The largest difference of two clocks that is ignored.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(10);

/// The times of the machine's clock and of the clocks of the servers that answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgeClock {
    machine: Timestamp,
    /// Equal to `machine` if the difference is at most [`TOLERANCE`]; `None` if no server sent a
    /// date.
    servers: Option<Timestamp>,
}

impl AgeClock {
    /// `server_offset` is the number of seconds by which the servers' clocks are ahead of the
    /// machine's.
    pub(super) fn new(machine: Timestamp, server_offset: Option<i64>) -> AgeClock {
        let servers = server_offset.map(|seconds| {
            let offset = SignedDuration::from_secs(seconds);
            if offset.abs() <= TOLERANCE {
                return machine;
            }
            machine.saturating_add(offset).unwrap_or(machine)
        });
        AgeClock { machine, servers }
    }

    /// The earlier of the two times: a wait ends only when both clocks have reached its end.
    pub(super) fn earlier(&self) -> Timestamp {
        self.servers
            .map_or(self.machine, |servers| servers.min(self.machine))
    }

    /// The later of the two times, which is recorded when a version is seen for the first time.
    pub(super) fn later(&self) -> Timestamp {
        self.servers
            .map_or(self.machine, |servers| servers.max(self.machine))
    }

    /// Whether `time` is more than [`TOLERANCE`] ahead of both clocks.
    pub(super) fn is_future(&self, time: Timestamp) -> bool {
        time.duration_since(self.later()) > TOLERANCE
    }

    /// Whether a server sent a date, so that [`AgeClock::later`] is not in the past even if the
    /// machine's clock is behind.
    pub(super) fn is_confirmed(&self) -> bool {
        self.servers.is_some()
    }

    /// The fault of the machine's clock, if it differs from the servers' clocks by more than
    /// [`TOLERANCE`].
    pub(super) fn fault(&self) -> Option<String> {
        let ahead = self.machine.duration_since(self.servers?);
        if ahead.is_zero() {
            return None;
        }
        let unit = if ahead.abs() < SignedDuration::from_hours(48) {
            Unit::Minute
        } else {
            Unit::Hour
        };
        let rounded = ahead
            .abs()
            .round(SignedDurationRound::new().smallest(unit))
            .unwrap_or(ahead.abs());
        let direction = if ahead.is_positive() {
            "ahead of"
        } else {
            "behind"
        };
        Some(format!(
            "the clock of this machine is {rounded:#} {direction} those of the servers; a wait ends \
             only when both have reached its end"
        ))
    }
}

// Versions that are used before their minimum age: `--urgent NAME=VERSION`.

/// A version of a variable, item or list that need not wait.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{name}={version}")]
pub(crate) struct UrgentVersion {
    /// The name of the variable, item or list, as the report of `update` shows it.
    name: String,
    /// The version, or the digest of a list or of a tag that moved.
    version: String,
}

impl UrgentVersion {
    pub(crate) fn is(&self, name: &str, version: &str) -> bool {
        self.name == name && self.version == version
    }
}

impl FromStr for UrgentVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<UrgentVersion, String> {
        match text.rsplit_once('=') {
            Some((name, version)) if !name.is_empty() && !version.is_empty() => Ok(UrgentVersion {
                name: name.to_owned(),
                version: version.to_owned(),
            }),
            _ => Err("write the name and the version, as in kubernetes=v1.33.6".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_that_prolongs_a_wait_is_used() {
        let now: Timestamp = "2026-11-25T10:00:00Z".parse().unwrap();
        let day = 86400;
        for (offset, earlier, later, fault) in [
            (None, 0, 0, None),
            (Some(0), 0, 0, None),
            (Some(-599), 0, 0, None),
            (Some(-30 * day), -30 * day, 0, Some("720h ahead of")),
            (Some(day), 0, day, Some("24h behind")),
        ] {
            let clock = AgeClock::new(now, offset);
            let seconds = |time: Timestamp| time.as_second() - now.as_second();
            assert_eq!(
                (seconds(clock.earlier()), seconds(clock.later())),
                (earlier, later),
                "{offset:?}"
            );
            match (clock.fault(), fault) {
                (Some(told), Some(fault)) => assert!(told.contains(fault), "{told}"),
                (told, fault) => assert_eq!(told.as_deref(), fault),
            }
        }
    }

    #[test]
    fn an_urgent_version_has_a_name_and_a_version() {
        let urgent: UrgentVersion = "quay.io/a/b=v1.0.1".parse().unwrap();
        assert!(urgent.is("quay.io/a/b", "v1.0.1") && !urgent.is("quay.io/a/b", "v1.0.2"));
        assert_eq!(urgent.to_string(), "quay.io/a/b=v1.0.1");
        for bad in ["a", "a=", "=1", ""] {
            assert!(bad.parse::<UrgentVersion>().is_err(), "{bad}");
        }
    }
}
