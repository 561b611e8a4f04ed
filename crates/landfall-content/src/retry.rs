//! The one place that decides whether a part is tried again, or its stream is opened again, and
//! after which pause.
//!
//! Requests that fail before their answer are tried again by the transport ([`landfall_http`]).
//! What fails there is final here. Here only what broke after that is counted: streams that ended
//! early, bodies that a sink refused, and bytes with another digest.

use super::{TransferError, WriteError};
use landfall_http::{Attempts, ErrorKind, HttpError, RetryPolicy};
use landfall_model::Limits;
use landfall_model::report::TransferSide;
use std::time::Duration;

/// An attempt that failed.
#[derive(Debug)]
pub struct FailedAttempt {
    /// The error to report if no other attempt follows.
    pub error: TransferError,
    /// What broke.
    pub cause: FailureCause,
}

/// What broke in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// Something that no other attempt can fix.
    Final,
    /// The sink broke off what it was taking.
    Sink,
    /// The sink found out how to take it: its attempts count anew.
    SinkLearned,
    /// The bytes are not the content. Once may be a bad link or cache; twice is what the source
    /// has.
    Wrong,
    /// The bytes are not the content, and the next attempt reads it in another way.
    WrongOnce,
}

impl FailedAttempt {
    /// A failure of this cause.
    pub fn new(error: TransferError, cause: FailureCause) -> FailedAttempt {
        FailedAttempt { error, cause }
    }

    /// A source that could not be opened.
    pub(super) fn opening(error: HttpError) -> FailedAttempt {
        FailedAttempt::new(TransferError::source(error), FailureCause::Final)
    }

    /// A stream of the source that failed, and is not opened again.
    pub(super) fn reading(error: HttpError) -> FailedAttempt {
        let cause = if error.kind == ErrorKind::Invalid {
            FailureCause::Wrong
        } else {
            FailureCause::Final
        };
        FailedAttempt::new(TransferError::source(error), cause)
    }
}

/// A write that failed: wrong bytes are the source's, all else is final.
impl From<TransferError> for FailedAttempt {
    fn from(error: TransferError) -> FailedAttempt {
        let wrong = error.side == TransferSide::Source && error.why.kind == ErrorKind::Invalid;
        FailedAttempt::new(
            error,
            if wrong {
                FailureCause::Wrong
            } else {
                FailureCause::Final
            },
        )
    }
}

impl From<WriteError> for FailedAttempt {
    fn from(error: WriteError) -> FailedAttempt {
        TransferError::from(error).into()
    }
}

/// What is counted over the attempts at one part.
#[derive(Debug)]
pub(super) struct PartAttempts {
    /// Streams of the source that broke off since there was progress.
    source: Attempts,
    /// Those at which the sink failed.
    sink: Attempts,
    /// How often the bytes were wrong.
    wrong: u32,
    /// [`Limits::progress`].
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

    /// The pause before a stream that broke off after `came` new bytes is opened again; `None`
    /// where it is not. There is no pause while there is progress.
    pub(super) fn broke_off(&mut self, came: u64) -> Option<Duration> {
        if came >= self.progress {
            self.source.reset();
            return Some(Duration::ZERO);
        }
        self.source.fail()
    }

    /// The pause before the next attempt; `None` where there is none.
    pub(super) fn after(&mut self, cause: FailureCause) -> Option<Duration> {
        match cause {
            FailureCause::Final => None,
            FailureCause::SinkLearned => {
                self.sink.reset();
                Some(Duration::ZERO)
            }
            FailureCause::Sink => self.sink.fail(),
            FailureCause::WrongOnce => Some(Duration::ZERO),
            FailureCause::Wrong => {
                self.wrong += 1;
                Some(Duration::ZERO).filter(|_| self.wrong < 2)
            }
        }
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
    fn a_source_may_break_as_often_as_there_is_progress() {
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
    fn a_sink_has_attempts_of_its_own_and_new_ones_when_it_learned() {
        let mut tried = attempts();
        assert!(
            tried.after(FailureCause::Sink).is_some() && tried.after(FailureCause::Sink).is_some()
        );
        assert_eq!(tried.after(FailureCause::SinkLearned), Some(Duration::ZERO));
        assert!(
            tried.after(FailureCause::Sink).is_some() && tried.after(FailureCause::Sink).is_some()
        );
        assert_eq!(tried.after(FailureCause::Sink), None);
        assert_eq!(attempts().after(FailureCause::Final), None);
    }
}
