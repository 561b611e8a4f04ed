//! Reads a body as a whole, and again where it broke off or came wrong: the one policy for
//! manifests, lists, checksum files, and files whose digest is not known yet.
//! [`super::Transport::send`] tries the request itself again.

use super::error::{ErrorKind, HttpError};
use super::retry::{Attempts, RetryPolicy};

/// Why an attempt to read a whole body failed.
#[derive(Debug)]
pub enum BodyFailure<E> {
    /// Another attempt would not help: there was no answer, or a refusal.
    Final(E),
    /// It broke off.
    Broke(E),
    /// It came whole, and is not what was asked for. Once may be a bad link or cache; twice is what
    /// the source has.
    Wrong(E),
}

impl<E: From<HttpError>> BodyFailure<E> {
    /// What failed while a body was read.
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

/// The attempts to read one body.
#[derive(Debug)]
pub struct BodyAttempts {
    attempts: Attempts,
    /// One was wrong.
    wrong: bool,
}

impl RetryPolicy {
    /// No attempt at a body has failed yet.
    pub fn body_attempts(self) -> BodyAttempts {
        BodyAttempts {
            attempts: self.start(),
            wrong: false,
        }
    }
}

impl BodyAttempts {
    /// Waits until the next attempt. After a wrong body that is at once: the host is not
    /// overloaded, and nothing changes by waiting, which would keep a transfer slot from other
    /// hosts.
    ///
    /// # Errors
    /// What failed, where no other attempt follows.
    pub async fn after<E>(&mut self, failure: BodyFailure<E>) -> Result<(), E> {
        let (error, is_tried_again) = match failure {
            BodyFailure::Final(error) => (error, false),
            BodyFailure::Wrong(error) => {
                let is_second = std::mem::replace(&mut self.wrong, true);
                (error, !is_second && self.attempts.fail().is_some())
            }
            BodyFailure::Broke(error) => (error, self.attempts.wait_for_next().await),
        };
        if is_tried_again { Ok(()) } else { Err(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use landfall_model::Limits;
    use std::time::Duration;

    /// How many attempts are made where each fails so.
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
    async fn a_wrong_body_is_tried_again_without_a_pause() {
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
    async fn what_broke_is_tried_often_what_is_wrong_once_more_and_a_refusal_is_final() {
        assert_eq!(attempts(BodyFailure::Broke).await, 5);
        assert_eq!(attempts(BodyFailure::Wrong).await, 2);
        assert_eq!(attempts(BodyFailure::Final).await, 1);
    }
}
