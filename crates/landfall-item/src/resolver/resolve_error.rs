//! The error of `lock` for one item, made from the errors of requests and of local content.

use landfall_content::ContentError;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::ManifestError;
use landfall_model::report::one_line;
use tokio::task::JoinError;

/// Why an item cannot be resolved.
///
/// A lock must be the same on every machine, so the text that it records names no mirror, redirect
/// or time. The message for people names them.
#[derive(Debug, Clone, derive_more::Display)]
#[display("{message}")]
pub struct ResolveError {
    /// The text for the lock.
    pub recorded: String,
    /// The message for the user, with details that the lock does not record.
    pub message: String,
    /// Whether upstream answered that it does not have the item.
    pub is_gone: bool,
    /// Whether the failure may be temporary: this machine failed, or a request failed and `is_gone`
    /// is not set.
    pub is_temporary: bool,
    /// Whether the item has none of the platforms that were requested, all of which it may lack.
    pub is_for_other_platforms: bool,
}

impl ResolveError {
    /// A failure of this machine. Its text differs from machine to machine, so the lock gets a
    /// fixed text instead.
    pub fn local(message: String) -> ResolveError {
        ResolveError {
            message: one_line(&message),
            is_temporary: true,
            .."the machine that locked it could not read, store or process it".into()
        }
    }

    /// The error for an item that has none of the requested platforms, all of which it may lack.
    pub(crate) fn other_platforms(why: String) -> ResolveError {
        ResolveError {
            is_for_other_platforms: true,
            ..why.into()
        }
    }

    /// The error if upstream answered that it does not have the item.
    pub fn gone() -> ResolveError {
        ResolveError {
            is_gone: true,
            ..GONE.into()
        }
    }

    /// Like [`ResolveError::gone`]. The message for people also says what upstream has instead.
    pub(crate) fn gone_but(has: &str) -> ResolveError {
        let gone = ResolveError::gone();
        ResolveError {
            message: one_line(&format!("{}: {has}", gone.message)),
            ..gone
        }
    }

    /// The same error with `part`, the part of the item that failed, in front of both texts.
    #[must_use]
    pub fn about(self, part: &str) -> ResolveError {
        let [recorded, message] =
            [self.recorded, self.message].map(|text| one_line(&format!("{part}: {text}")));
        ResolveError {
            recorded,
            message,
            ..self
        }
    }

    /// The same error, with the failure `next` of the following attempt added to the message for
    /// people. The lock records only the first failure: the mirrors that were tried differ from run
    /// to run.
    #[must_use]
    pub fn followed_by(self, next: &impl std::fmt::Display) -> ResolveError {
        ResolveError {
            message: one_line(&format!("{}; {next}", self.message)),
            ..self
        }
    }
}

const GONE: &str = "upstream does not have it";

impl From<String> for ResolveError {
    fn from(why: String) -> ResolveError {
        // it may quote an index or a chart, whose text could contain line breaks
        let why = one_line(&why);
        ResolveError {
            recorded: why.clone(),
            message: why,
            is_gone: false,
            is_temporary: false,
            is_for_other_platforms: false,
        }
    }
}

impl From<&str> for ResolveError {
    fn from(why: &str) -> ResolveError {
        why.to_owned().into()
    }
}

/// A task on a blocking thread that panicked.
impl From<JoinError> for ResolveError {
    fn from(error: JoinError) -> ResolveError {
        ResolveError::local(error.to_string())
    }
}

impl From<HttpError> for ResolveError {
    fn from(error: HttpError) -> ResolveError {
        let recorded = match error.kind {
            ErrorKind::NotFound => GONE,
            ErrorKind::Denied => "upstream refuses access",
            ErrorKind::Proxy(_) => "the proxy does not let it through",
            ErrorKind::RetryAfter(_) => "upstream asked to retry later",
            ErrorKind::Network | ErrorKind::GivenUp => "upstream was not reached",
            ErrorKind::Status(_) => "upstream answered with an error",
            ErrorKind::Invalid => "upstream's answer was not valid",
            ErrorKind::Local => "the request could not be sent",
        };
        let is_gone = is_gone(&error);
        ResolveError {
            message: error.to_string(),
            is_gone,
            is_temporary: !is_gone,
            ..recorded.into()
        }
    }
}

/// Whether upstream does not have the item. Docker Hub and Quay answer 401 for a deleted
/// repository, as they do for a private one; proxies and firewalls refuse with 403.
fn is_gone(error: &HttpError) -> bool {
    error.kind == ErrorKind::NotFound
        || (error.kind == ErrorKind::Denied && error.status == Some(401))
}

impl From<ManifestError> for ResolveError {
    fn from(error: ManifestError) -> ResolveError {
        error.to_string().into()
    }
}

impl From<ContentError> for ResolveError {
    fn from(error: ContentError) -> ResolveError {
        // content is read from this machine's store, so the text of the error may name its paths
        ResolveError::local(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::StatusCode;

    #[test]
    fn a_401_means_gone_and_a_403_does_not() {
        for (status, gone) in [(401, true), (403, false)] {
            let error = HttpError::new(ErrorKind::Denied, "no")
                .with_status(StatusCode::from_u16(status).unwrap());
            assert_eq!(ResolveError::from(error).is_gone, gone, "{status}");
        }
        assert!(!ResolveError::from(HttpError::new(ErrorKind::Denied, "no account")).is_gone);
        assert!(!ResolveError::from(HttpError::new(ErrorKind::Network, "lost")).is_gone);
    }
}
