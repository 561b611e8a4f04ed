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
pub struct Failed {
    /// The error to report if no other attempt follows.
    pub error: TransferError,
    /// What broke.
    pub cause: Cause,
}

/// What broke in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
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

impl Failed {
    /// A failure of this cause.
    pub fn new(error: TransferError, cause: Cause) -> Failed {
        Failed { error, cause }
    }

    /// A source that could not be opened.
    pub(super) fn opening(error: HttpError) -> Failed {
        Failed::new(TransferError::source(error), Cause::Final)
    }

    /// A stream of the source that failed, and is not opened again.
    pub(super) fn reading(error: HttpError) -> Failed {
        let cause = if error.kind == ErrorKind::Invalid {
            Cause::Wrong
        } else {
            Cause::Final
        };
        Failed::new(TransferError::source(error), cause)
    }
}

/// A write that failed: wrong bytes are the source's, all else is final.
impl From<TransferError> for Failed {
    fn from(error: TransferError) -> Failed {
        let wrong = error.side == TransferSide::Source && error.why.kind == ErrorKind::Invalid;
        Failed::new(error, if wrong { Cause::Wrong } else { Cause::Final })
    }
}

impl From<WriteError> for Failed {
    fn from(error: WriteError) -> Failed {
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
    pub(super) fn after(&mut self, cause: Cause) -> Option<Duration> {
        match cause {
            Cause::Final => None,
            Cause::SinkLearned => {
                self.sink.reset();
                Some(Duration::ZERO)
            }
            Cause::Sink => self.sink.fail(),
            Cause::WrongOnce => Some(Duration::ZERO),
            Cause::Wrong => {
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
        assert!(tried.after(Cause::WrongOnce).is_some());
        assert!(tried.after(Cause::Wrong).is_some() && tried.after(Cause::Wrong).is_none());
    }

    #[test]
    fn a_sink_has_attempts_of_its_own_and_new_ones_when_it_learned() {
        let mut tried = attempts();
        assert!(tried.after(Cause::Sink).is_some() && tried.after(Cause::Sink).is_some());
        assert_eq!(tried.after(Cause::SinkLearned), Some(Duration::ZERO));
        assert!(tried.after(Cause::Sink).is_some() && tried.after(Cause::Sink).is_some());
        assert_eq!(tried.after(Cause::Sink), None);
        assert_eq!(attempts().after(Cause::Final), None);
    }
}
