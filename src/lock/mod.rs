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

/// Today, `YYYY-MM-DD`, in UTC: what `until` days are compared with.
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
