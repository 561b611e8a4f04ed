//! Decides which versions wait for their minimum age.

use super::UrgentVersion;
use super::aged_candidates::AgeClock;
use super::first_sights::{FirstSights, SightKey};
use jiff::Timestamp;
use landfall_model::MinimumAge;
use landfall_model::report::{Notice, NoticeKind};
use std::collections::BTreeSet;

/// A wait for the minimum age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgeWait {
    /// When this project first saw the version or its content.
    pub(crate) first_seen: Timestamp,
    /// The time from which the version can be used.
    pub(crate) until: Timestamp,
}

/// The minimum age of a rule, if anything waits for it at all.
pub(super) fn waiting_age(min_age: Option<&MinimumAge>) -> Option<&MinimumAge> {
    min_age.filter(|age| !age.is_zero())
}

/// The state at the end of a run.
pub(super) struct RunEnd {
    /// Whether the run looked at all versions.
    pub(super) has_seen_all: bool,
    /// Whether the file of first sights must be written again.
    pub(super) rewrite: bool,
    pub(super) clock: AgeClock,
}

/// The first sights of a run, and its notices about them.
#[derive(Debug)]
pub(super) struct VersionAges<'a> {
    sights: FirstSights,
    before: &'a FirstSights,
    /// The sights that this run looked up.
    used: BTreeSet<SightKey>,
    /// The longest minimum age of the manifests.
    longest: Option<MinimumAge>,
    urgent: &'a [UrgentVersion],
    used_urgent: BTreeSet<usize>,
    /// Faults of the machine's clock and of recorded times.
    notices: Vec<Notice>,
}

impl<'a> VersionAges<'a> {
    pub(super) fn new(before: &'a FirstSights, urgent: &'a [UrgentVersion]) -> VersionAges<'a> {
        VersionAges {
            sights: before.clone(),
            before,
            used: BTreeSet::new(),
            longest: None,
            urgent,
            used_urgent: BTreeSet::new(),
            notices: Vec::new(),
        }
    }

    /// Whether this version of `name` is urgent. If so, marks it as used.
    pub(super) fn is_urgent(&mut self, name: &str, version: &str) -> bool {
        let found = self.urgent.iter().position(|one| one.is(name, version));
        self.used_urgent.extend(found);
        found.is_some()
    }

    /// Keeps sights that this run does not use for at least `min_age`, a minimum age in the
    /// manifests, so that a version that is missing in one run does not wait again.
    pub(super) fn keep_sights_for(&mut self, min_age: Option<&MinimumAge>) {
        if self.longest.as_ref() < min_age {
            self.longest = min_age.cloned();
        }
    }

    /// Returns the wait of the version or digest `key`, or `None` if it is old enough. If it was
    /// not seen before, its first sight is recorded.
    pub(super) fn wait(
        &mut self,
        key: SightKey,
        min_age: &MinimumAge,
        clock: AgeClock,
    ) -> Option<AgeWait> {
        self.keep_sights_for(Some(min_age));
        let first_seen = self.first_sight(key, clock);
        let until = min_age.end(first_seen);
        (until > clock.earlier()).then_some(AgeWait { first_seen, until })
    }

    /// The first sight of the version or digest `key`; `None` if it was not seen.
    pub(super) fn sight(&self, key: &SightKey) -> Option<Timestamp> {
        self.sights.get(key)
    }

    /// Counts the age of the version or digest `key` from `time` on, if it was seen before and
    /// `time` is earlier than its first sight. `time` must be verified, and not chosen by a
    /// publisher.
    pub(super) fn count_from(&mut self, key: &SightKey, time: Timestamp) {
        if self.sights.get(key).is_some_and(|seen| time < seen) {
            self.sights.set(key.clone(), time);
        }
    }

    fn first_sight(&mut self, key: SightKey, clock: AgeClock) -> Timestamp {
        if let Some(fault) = clock.fault() {
            self.note("clock", fault);
        }
        self.used.insert(key.clone());
        let known = self.sights.get(&key);
        let seen = match known {
            Some(seen) if !clock.is_future(seen) => return seen,
            // The servers confirm that the machine's clock was ahead when this time was recorded.
            Some(seen) if clock.is_confirmed() => {
                let message = format!(
                    "its first sight was recorded for {seen}, which is in the future; its age \
                     counts from now"
                );
                self.note(&key.to_string(), message);
                clock.later()
            }
            // The clock of this run may be behind, and the recorded time may be right, so the
            // recorded time is kept.
            Some(seen) => {
                let message = format!(
                    "its first sight was recorded for {seen}, which is in the future; check the clock \
                     of this machine, or correct the time in the .seen file next to the lock"
                );
                self.note(&key.to_string(), message);
                return seen;
            }
            None if clock.is_confirmed() => clock.later(),
            // Without a second clock, the time of a new sight is at least that of the last sight.
            None => self.before.latest().map_or(clock.later(), |latest| {
                if clock.is_future(latest) {
                    let message = format!(
                        "the clock of this machine is behind the last recorded time, {latest}, \
                         which counts instead"
                    );
                    self.note("clock", message);
                }
                latest.max(clock.later())
            }),
        };
        self.sights.set(key, seen);
        seen
    }

    fn note(&mut self, name: &str, message: String) {
        let notice = Notice::new(NoticeKind::Clock, name, message);
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Ends the run. If it looked at everything, old sights that it did not use are removed, but
    /// only together with other changes: a run without news writes nothing.
    pub(super) fn end(mut self, end: RunEnd) -> AgesOutcome {
        let RunEnd {
            has_seen_all,
            rewrite,
            clock,
        } = end;
        let has_changed = rewrite || self.sights != *self.before;
        if has_changed && has_seen_all {
            self.sights
                .prune(&self.used, self.longest.as_ref(), clock.earlier());
        }
        let unused = (0..self.urgent.len()).filter(|at| !self.used_urgent.contains(at));
        AgesOutcome {
            unused_urgent: unused.map(|at| self.urgent[at].to_string()).collect(),
            sights: has_changed.then(|| ChangedSights {
                before: self.before.clone(),
                after: self.sights,
            }),
            notices: self.notices,
        }
    }
}

/// The first sights before and after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedSights {
    before: FirstSights,
    pub(crate) after: FirstSights,
}

impl ChangedSights {
    /// The first sights to write if the file now contains `present`.
    pub(crate) fn merged_with(&self, present: &FirstSights) -> FirstSights {
        let mut merged = self.after.clone();
        if *present != self.before {
            merged.merge(present);
        }
        merged
    }
}

/// The first sights after a run, and notices about ages.
#[derive(Debug, Default)]
pub(crate) struct AgesOutcome {
    /// The first sights; `None` if their file need not be written.
    pub(crate) sights: Option<ChangedSights>,
    /// Faults of the machine's clock and of recorded times.
    pub(crate) notices: Vec<Notice>,
    /// The urgent versions that no entry could move to.
    pub(crate) unused_urgent: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use proptest::prelude::*;

    const DAY: i64 = 86400;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * DAY).unwrap()
    }

    /// Simulates one run for each pair in `runs`: the days that the clocks of the machine and of
    /// the server show. Returns the indexes of the runs in which the version could be used, and all
    /// notices.
    fn taken(runs: &[(i64, Option<i64>)], age: i64) -> (Vec<usize>, Vec<Notice>) {
        let mut sights = FirstSights::default();
        let mut taken = Vec::new();
        let mut notices = Vec::new();
        for (run, (machine, server)) in runs.iter().enumerate() {
            let before = sights.clone();
            let mut ages = VersionAges::new(&before, &[]);
            let clock = AgeClock::new(at(*machine), server.map(|day| (day - machine) * DAY));
            let min_age = format!("{age}d").parse().unwrap();
            if ages
                .wait(SightKey::new("a", "1"), &min_age, clock)
                .is_none()
            {
                taken.push(run);
            }
            let outcome = ages.end(RunEnd {
                has_seen_all: true,
                rewrite: false,
                clock,
            });
            sights = outcome.sights.map_or(before, |changed| changed.after);
            notices.extend(outcome.notices);
        }
        (taken, notices)
    }

    #[test]
    fn wrong_clocks_do_not_shorten_a_wait_and_are_reported() {
        let right = |days: &[i64]| {
            days.iter()
                .map(|day| (*day, Some(*day)))
                .collect::<Vec<_>>()
        };
        assert_eq!(taken(&right(&[0, 6, 7, 8]), 7), (vec![2, 3], vec![]));
        for (runs, first) in [
            // ahead in one run: at the first sight, and later
            (
                &[(30, Some(0)), (1, Some(1)), (7, Some(7)), (8, Some(8))][..],
                3,
            ),
            (
                &[(0, Some(0)), (30, Some(1)), (6, Some(6)), (7, Some(7))],
                3,
            ),
            // behind in one run
            (&[(-3000, Some(0)), (6, Some(6)), (7, Some(7))], 2),
            (
                &[(0, Some(0)), (-3000, Some(1)), (6, Some(6)), (7, Some(7))],
                3,
            ),
            // behind without another clock: the wait stays the same, and only a notice is added
            (&[(0, None), (-3000, None), (6, None), (7, None)], 3),
        ] {
            let (taken, notices) = taken(runs, 7);
            assert_eq!(taken.first(), Some(&first), "{runs:?}");
            assert!(!notices.is_empty(), "{runs:?}");
        }
        // ahead at the first sight without another clock: reported until the recorded time has come
        let (taken, notices) = taken(&[(300, None), (1, None), (20, None), (307, None)], 7);
        assert_eq!((taken, notices.len()), (vec![3], 2));
    }

    #[test]
    fn a_long_wait_goes_on_after_a_run_without_the_version() {
        let [age, shorter] = ["60d", "7d"].map(|age| age.parse().unwrap());
        let mut sights = FirstSights::default();
        for (day, versions) in [(0, &["1"][..]), (40, &[]), (41, &["1"])] {
            let before = sights.clone();
            let mut ages = VersionAges::new(&before, &[]);
            let clock = AgeClock::new(at(day), Some(0));
            ages.keep_sights_for(Some(&age));
            for version in versions {
                ages.wait(SightKey::new("a", version), &age, clock);
            }
            ages.wait(SightKey::new("b", day.to_string()), &shorter, clock);
            let outcome = ages.end(RunEnd {
                has_seen_all: true,
                rewrite: false,
                clock,
            });
            sights = outcome.sights.map_or(before, |changed| changed.after);
        }
        assert_eq!(sights.get(&SightKey::new("a", "1")), Some(at(0)));
    }

    #[test]
    fn a_new_version_is_not_dated_before_the_last_sight() {
        let mut before = FirstSights::default();
        before.set(SightKey::new("a", "1"), at(10));
        let clock = AgeClock::new(at(-3000), None);
        let mut ages = VersionAges::new(&before, &[]);
        let wait = ages.wait(SightKey::new("a", "2"), &"7d".parse().unwrap(), clock);
        assert_eq!(wait.map(|wait| wait.first_seen), Some(at(10)));
        let told = ages
            .end(RunEnd {
                has_seen_all: true,
                rewrite: false,
                clock,
            })
            .notices;
        assert!(told[0].message.contains("is behind"), "{told:?}");
    }

    proptest! {
        /// If at least one of the two clocks is right in every run, a version is never used before
        /// its minimum age.
        #[test]
        fn a_version_is_never_taken_too_early(
            runs in proptest::collection::vec((0..4_i64, -400..400_i64, any::<bool>()), 1..20),
        ) {
            let mut day = 0;
            let mut clocks = Vec::new();
            let mut real = Vec::new();
            for (pause, wrong, is_machine) in runs {
                day += pause;
                real.push(day);
                let pair = if is_machine { (wrong, Some(day)) } else { (day, Some(wrong)) };
                clocks.push(pair);
            }
            let (taken, _) = taken(&clocks, 7);
            for run in taken {
                let age = SignedDuration::from_hours(24 * (real[run] - real[0]));
                prop_assert!(age >= SignedDuration::from_hours(24 * 7), "{clocks:?}");
            }
        }
    }
}
