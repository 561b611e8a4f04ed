//! WHAT IT IS EXACTLY. The lock as a document: it names every item by digest; whatever follows works from
//! the lock alone.

mod document;
#[cfg(test)]
mod tests;
mod text;

/// The name of the lock where none is given, and inside a bundle.
pub const FILE_NAME: &str = "landfall.lock";

pub use document::{
    Accepted, File, Image, Lock, LockError, LockedManifest, Referrer, Sidecar, Trimmed, Unresolved,
};
