//! WHAT IT IS EXACTLY. The lock as a document: it has the digest of every item. All later steps
//! need only the lock.

mod collision;
pub mod delivered;
mod document;
mod endpoint;
mod error;
mod lists;
mod load;
mod losses;
#[cfg(test)]
mod tests;
mod text;

/// The name of the lock where none is given, and inside a bundle.
pub const FILE_NAME: &str = "landfall.lock";

pub use collision::{Collision, collision};
pub use document::{AcceptedLoss, Lock, LockedKind, UnresolvedItem};
pub use endpoint::Endpoint;
pub use error::LockError;
pub use lists::{ExportInput, FORMS};
pub use losses::losses;
