//! WHAT IT IS EXACTLY. The lock names every item of a manifest by digest; whatever follows works
//! from the lock alone.

mod document;

pub use document::{
    Accepted, File, Image, Lock, LockError, LockedManifest, Referrer, Sidecar, Trimmed, Unresolved,
};
