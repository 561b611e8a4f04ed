//! Why a push could not begin.

use landfall_http::HttpError;
use landfall_item::lockfile::Collision;

/// Why a push could not begin.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Two digests would get one name.
    #[error(transparent)]
    Collision(#[from] Box<Collision>),
    /// The registry cannot be reached at all.
    #[error("{0}")]
    Unreachable(HttpError),
}
