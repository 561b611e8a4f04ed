//! Retries reading a whole body that broke off or is not the expected content. This is the policy
//! for manifests, lists, git packs, and files that are downloaded while they are locked. The
//! request itself is retried by [`Transport::send`](crate::Transport::send).

use super::error::{ErrorKind, HttpError};
use super::retry::{Attempts, RetryPolicy};

/// The failure of an attempt to read a whole body, by whether another attempt may help.
#[derive(Debug)]
pub enum BodyFailure<E> {
    /// Another attempt would not help: the request failed, or was refused.
    Final(E),
    /// The body broke off; it is retried like a failed request.
    Broke(E),
    /// The body is complete, but not the expected content. The first time, a bad connection or
    /// cache may be the cause; the second time, the source itself has wrong content.
    Wrong(E),
}

impl<E: From<HttpError>> BodyFailure<E> {
    /// Returns the failure of a body that ended with `error`.
    pub fn reading(error: HttpError) -> BodyFailure<E> {
        match error.kind {
            ErrorKind::Network => BodyFailure::Broke(error.into()),
            _ => BodyFailure::Final(error.into()),
        }
    }
}

impl<E: From<HttpError>> From<HttpError> for BodyFailure<E> {
    fn from(error: HttpError) -> BodyFailure<E> {
        BodyFailure::Final(error.into())
    }
}

/// Counts the attempts to read one body.
#[derive(Debug)]
pub struct BodyAttempts {
    attempts: Attempts,
    /// Whether a body was complete and wrong before.
    was_wrong: bool,
}

impl RetryPolicy {
    /// Returns a counter for the attempts to read one body.
    pub fn body_attempts(self) -> BodyAttempts {
        BodyAttempts {
            attempts: self.start(),
            was_wrong: false,
        }
    }
}

impl BodyAttempts {
    /// Waits until the next attempt. After a wrong body there is no pause: the host is not
    /// overloaded, and a pause would only keep a transfer slot from other hosts.
    ///
    /// # Errors
    /// If `failure` is final, or no attempt is left; returns the error of `failure`.
    pub async fn after<E>(&mut self, failure: BodyFailure<E>) -> Result<(), E> {
        let (error, is_retried) = match failure {
            BodyFailure::Final(error) => (error, false),
            // a source that has the wrong content would be downloaded five times otherwise
            BodyFailure::Wrong(error) => {
                let is_second = std::mem::replace(&mut self.was_wrong, true);
                (error, !is_second && self.attempts.fail().is_some())
            }
            BodyFailure::Broke(error) => (error, self.attempts.wait_for_next().await),
        };
        if is_retried { Ok(()) } else { Err(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use landfall_model::Limits;
    use std::time::Duration;

    /// The number of attempts if each fails like this.
    async fn attempts(failure: fn(&'static str) -> BodyFailure<&'static str>) -> u32 {
        let limits = Limits {
            attempts: 5,
            backoff: Duration::from_millis(1),
            ..Limits::default()
        };
        let mut attempts = RetryPolicy::new(&limits).body_attempts();
        let mut made = 1;
        while attempts.after(failure("no")).await.is_ok() {
            made += 1;
        }
        made
    }

    #[tokio::test]
    async fn a_wrong_body_is_retried_without_a_pause() {
        let limits = Limits {
            attempts: 5,
            backoff: Duration::from_hours(1),
            ..Limits::default()
        };
        let mut attempts = RetryPolicy::new(&limits).body_attempts();
        assert_eq!(
            attempts.after(BodyFailure::Wrong("no")).now_or_never(),
            Some(Ok(()))
        );
        assert_eq!(
            attempts.after(BodyFailure::Wrong("no")).now_or_never(),
            Some(Err("no"))
        );
    }

    #[tokio::test]
    async fn a_broken_body_gets_five_attempts_a_wrong_body_two_and_a_refusal_one() {
        assert_eq!(attempts(BodyFailure::Broke).await, 5);
        assert_eq!(attempts(BodyFailure::Wrong).await, 2);
        assert_eq!(attempts(BodyFailure::Final).await, 1);
    }
}
