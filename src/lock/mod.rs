//! WHAT IT IS EXACTLY. The lock names every item of a manifest by digest; whatever follows works
//! from the lock alone.

mod agree;
mod checksum;
mod document;
mod file;
mod image;
mod referrers;
mod resolve;
mod run;
#[cfg(test)]
mod tests;
mod text;

pub use agree::disagreements;
pub use document::{
    Accepted, File, Image, Lock, LockError, LockedManifest, Referrer, Sidecar, Trimmed, Unresolved,
};
pub use resolve::Resolver;
pub use run::{Change, Locked, Pins, diff, lock};

/// The name of the lock where none is given; and inside a bundle.
pub const FILE_NAME: &str = "landfall.lock";

/// Today, `YYYY-MM-DD`, in UTC: what `until` days are compared with.
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
