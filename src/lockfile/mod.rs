//! WHAT IT IS EXACTLY. The lock as a document: it has the digest of every item. All later steps need only the lock.

mod collision;
mod document;
mod error;
mod load;
mod losses;
#[cfg(test)]
mod tests;
mod text;

/// The name of the lock where none is given, and inside a bundle.
pub const FILE_NAME: &str = "landfall.lock";

pub use crate::item::{File, Image, LockedManifest, Referrer, Sidecar, Trimmed};
pub use collision::{Collision, collision};
pub use document::{Accepted, Lock, Unresolved};
pub use error::LockError;
pub use losses::losses;
