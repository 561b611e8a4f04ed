//! The network and store that resolving uses. Fetched content is stored, so that `pull` does not
//! fetch it again.

mod files;
mod lost_referrers;
mod manifests;
mod resolve_error;
mod state;

pub(crate) use lost_referrers::ATTESTATION;
pub use lost_referrers::{LostReferrer, LostReferrers};
pub use resolve_error::ResolveError;
pub use state::Resolver;
