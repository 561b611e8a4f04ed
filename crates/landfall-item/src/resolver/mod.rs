//! The network and store that resolving uses. Fetched content is stored, so that `pull` does not
//! fetch it again.

mod files;
mod manifests;
mod resolve_error;
mod state;

pub use self::resolve_error::ResolveError;
pub(crate) use self::state::ATTESTATION;
pub use self::state::{LostReferrer, LostReferrers, Resolver};
