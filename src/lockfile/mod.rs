//! WHAT IT IS EXACTLY. The lock as a document: it names every item by digest; whatever follows works from
//! the lock alone.

mod document;
#[cfg(test)]
mod tests;
mod text;

pub use document::{
    Accepted, File, Image, Lock, LockError, LockedManifest, Referrer, Sidecar, Trimmed, Unresolved,
};
