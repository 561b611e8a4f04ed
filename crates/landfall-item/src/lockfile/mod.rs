//! The lock as a document. It names every item by digest, and all later stages need only the lock.

mod collision;
pub mod delivered;
mod document;
mod endpoint;
mod error;
mod lists;
mod load;
mod losses;
mod lost_referrer;
mod signature_verdicts;
#[cfg(test)]
mod tests;
mod text;
mod url_conflict;

/// The default file name of the lock, and its name inside a bundle.
pub const FILE_NAME: &str = "landfall.lock";

pub use collision::{Collision, collision};
pub use document::{AcceptedLoss, Lock, LockedKind, UnresolvedItem};
pub use endpoint::Endpoint;
pub use error::LockError;
pub use lists::{EXPORT_FORMATS, ExportInput};
pub use losses::{accepted_losses, losses};
pub use lost_referrer::{lost_referrer_item, lost_referrer_name, referrer_item};
pub use signature_verdicts::SignatureVerdicts;
pub use url_conflict::{UrlConflict, url_conflicts};
