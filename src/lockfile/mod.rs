//! WHAT IT IS EXACTLY. The lock as a document: it has the digest of every item. All later steps need only the lock.

mod collision;
pub(crate) mod delivered;
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
pub(crate) const FILE_NAME: &str = "landfall.lock";

pub(crate) use collision::{Collision, collision};
pub use document::{Accepted, Lock, Unresolved};
pub use endpoint::Endpoint;
pub use error::LockError;
pub(crate) use lists::{Asked, FORMS};
pub(crate) use losses::losses;
