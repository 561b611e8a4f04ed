//! WHAT IT IS EXACTLY. Resolves the names of a manifest to digests.

mod agree;
mod checksum;
mod file;
mod image;
mod referrers;
mod resolve;
mod run;

pub use agree::disagreements;
pub use resolve::Resolver;
pub use run::{Change, Locked, Pins, diff, lock};
