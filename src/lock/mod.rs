//! WHAT IT IS EXACTLY. Resolves the names of a manifest to digests, each by its kind.

mod diff;
mod run;

pub use crate::item::{Pins, Resolver};
pub use diff::{Change, diff};
pub use run::{Locked, lock};
