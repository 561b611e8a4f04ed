//! Errors that stop a push before its first byte.

use landfall_http::HttpError;
use landfall_item::lockfile::Collision;

/// An error that stops a push before its first byte.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Two digests would get one name at the registry.
    #[error(transparent)]
    Collision(#[from] Box<Collision>),
    /// The registry cannot be reached, or a look-up fails.
    #[error("{0}")]
    Unreachable(HttpError),
}
