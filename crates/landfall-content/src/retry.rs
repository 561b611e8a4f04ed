//! Decides whether a part is transferred again, or its stream opened again, and after which pause.
//!
//! Requests that fail before their response are retried by the transport ([`landfall_http`]), so
//! such an error is final here. This module counts only what fails later: streams that end early,
//! bodies that a sink refuses, and wrong digests.

use crate::{TransferError, WriteError};
use landfall_http::{Activity, ActivitySnapshot, Attempts, ErrorKind, HttpError, RetryPolicy};
use landfall_model::Limits;
use landfall_model::report::TransferSide;
use std::time::Duration;

/// A failed attempt to transfer a part.
#[derive(Debug)]
pub struct FailedAttempt {
    /// The error to report if no further attempt is made.
    pub error: TransferError,
    /// What failed. This decides whether another attempt is made.
    pub cause: FailureCause,
}

/// What failed in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// Another attempt would fail too.
    Final,
    /// The sink broke off the write.
    Sink,
    /// The sink has adapted, for example to a body limit: its attempts are counted from zero.
    SinkAdapted,
    /// The bytes have another digest. The first time, the cause may be a bad connection or cache;
    /// the second time, the source itself has wrong bytes.
    Wrong,
    /// The bytes have another digest, and the next attempt will read them differently, for example
    /// without ranges. This failure is not counted.
    WrongOnce,
}

impl FailedAttempt {
    /// Returns a failed attempt with this cause.
    pub fn new(error: TransferError, cause: FailureCause) -> FailedAttempt {
        FailedAttempt { error, cause }
    }

    /// Returns the attempt that failed because the source could not be opened. The transport has
    /// retried already, so this is final.
    pub(super) fn opening(error: HttpError) -> FailedAttempt {
        FailedAttempt::new(TransferError::source(error), FailureCause::Final)
    }

    /// Returns the attempt that failed because a stream of the source failed. The stream is not
    /// opened again within this attempt.
    pub(super) fn reading(error: HttpError) -> FailedAttempt {
        TransferError::source(error).into()
    }
}

/// Wrong bytes are the fault of the source; every other failure is final.
impl From<TransferError> for FailedAttempt {
    fn from(error: TransferError) -> FailedAttempt {
        let is_wrong = error.side == TransferSide::Source && error.why.kind == ErrorKind::Invalid;
        let cause = if is_wrong {
            FailureCause::Wrong
        } else {
            FailureCause::Final
        };
        FailedAttempt::new(error, cause)
    }
}

impl From<WriteError> for FailedAttempt {
    fn from(error: WriteError) -> FailedAttempt {
        TransferError::from(error).into()
    }
}

/// Counts the failed attempts to transfer one part.
#[derive(Debug)]
pub(super) struct PartAttempts {
    /// Streams of the source that broke off since the last progress.
    source: Attempts,
    /// Attempts at which the sink failed.
    sink: Attempts,
    /// How often the digest was wrong.
    wrong: u32,
    /// How many new bytes count as progress, [`Limits::progress`].
    progress: u64,
}

impl PartAttempts {
    pub(super) fn new(limits: &Limits) -> PartAttempts {
        let policy = RetryPolicy::new(limits);
        PartAttempts {
            source: policy.start(),
            sink: policy.start(),
            wrong: 0,
            progress: limits.progress,
        }
    }

    /// Returns the pause before the source is opened again, or `None` after the last attempt.
    /// `received` is the number of new bytes before the stream broke off. As long as there is
    /// progress, there is no pause and no limit.
    pub(super) fn broke_off(&mut self, received: u64) -> Option<Duration> {
        if received >= self.progress {
            self.source.reset();
            // a source that makes progress, such as a CDN that cuts long responses, costs only one
            // more request
            return Some(Duration::ZERO);
        }
        self.source.fail()
    }

    /// Returns the pause before the next attempt, or `None` after the last one.
    pub(super) fn after(&mut self, cause: FailureCause) -> Option<Duration> {
        match cause {
            FailureCause::Final => None,
            FailureCause::SinkAdapted => {
                // not a failure of the same body: the next attempt sends it in another form
                self.sink.reset();
                Some(Duration::ZERO)
            }
            FailureCause::Sink => self.sink.fail(),
            FailureCause::WrongOnce => Some(Duration::ZERO),
            FailureCause::Wrong => {
                self.wrong += 1;
                (self.wrong < 2).then_some(Duration::ZERO)
            }
        }
    }
}

// Detects runs whose transfers wait for each other.

/// Detects that tasks wait for each other: for a long time, no request was in flight or waiting to
/// be retried, no long local work was under way, and no request has ended.
pub struct Watchdog {
    activity: Activity,
    patience: Duration,
    pub(super) has_barked: bool,
}

/// How often the activity is checked within `patience`.
const CHECKS: u32 = 8;

impl Watchdog {
    /// Returns a watchdog for `activity`. The run is stuck if nothing happens for `patience`.
    pub fn new(activity: Activity, patience: Duration) -> Watchdog {
        Watchdog {
            activity,
            patience,
            has_barked: false,
        }
    }

    /// Waits until the run is stuck and returns the error message. Later calls never return.
    pub async fn wait_until_stuck(&mut self) -> String {
        // a `select!` in a loop calls this again, but the run must be ended only once
        if self.has_barked {
            return std::future::pending().await;
        }
        let mut last: Option<ActivitySnapshot> = None;
        let mut idle_checks = 0;
        while idle_checks < CHECKS {
            tokio::time::sleep(self.patience / CHECKS).await;
            let snapshot = self.activity.snapshot();
            // several checks in a row, because a run may be between two requests for a moment
            if snapshot.busy == 0 && last == Some(snapshot) {
                idle_checks += 1;
            } else {
                idle_checks = 0;
            }
            last = Some(snapshot);
        }
        self.has_barked = true;
        self.message()
    }

    /// The message for a run that is stuck.
    pub(super) fn message(&self) -> String {
        format!(
            "no request was in flight for {} s and none can start, because the transfers wait for \
             each other; this is a bug in landfall; run the command again to resume, with \
             `--jobs 1` if it happens again",
            self.patience.as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts() -> PartAttempts {
        PartAttempts::new(&Limits {
            attempts: 3,
            progress: 100,
            ..Limits::default()
        })
    }

    #[test]
    fn a_source_that_makes_progress_may_break_off_any_number_of_times() {
        let mut tried = attempts();
        assert!((1..100).all(|_| tried.broke_off(100) == Some(Duration::ZERO)));
        assert!(
            tried
                .broke_off(99)
                .is_some_and(|pause| pause > Duration::ZERO)
        );
        assert!(tried.broke_off(0).is_some() && tried.broke_off(0).is_none());
    }

    #[test]
    fn wrong_bytes_are_final_the_second_time() {
        let mut tried = attempts();
        assert!(tried.after(FailureCause::WrongOnce).is_some());
        assert!(
            tried.after(FailureCause::Wrong).is_some()
                && tried.after(FailureCause::Wrong).is_none()
        );
    }

    #[test]
    fn a_sink_has_its_own_attempts_which_are_reset_when_it_has_adapted() {
        let mut tried = attempts();
        assert!(
            tried.after(FailureCause::Sink).is_some() && tried.after(FailureCause::Sink).is_some()
        );
        assert_eq!(tried.after(FailureCause::SinkAdapted), Some(Duration::ZERO));
        assert!(
            tried.after(FailureCause::Sink).is_some() && tried.after(FailureCause::Sink).is_some()
        );
        assert_eq!(tried.after(FailureCause::Sink), None);
        assert_eq!(attempts().after(FailureCause::Final), None);
    }
}
