//! The current time for the minimum ages of versions. Two clocks determine it, so that a wrong
//! clock does not end a wait too early.

use jiff::{SignedDuration, SignedDurationRound, Timestamp, Unit};

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
}
