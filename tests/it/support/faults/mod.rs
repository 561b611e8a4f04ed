//! A registry and file server for tests, which fails on demand. Each fault has a [`FaultKind`] and
//! applies to a number of requests of one [`RequestKind`]; [`Faults::set_faults`] sets the faults.

mod answers;
mod content;
mod products;
mod rig;
mod rules;
mod server;
mod switch;
mod wire;

pub use content::Content;
pub use rig::{Rig, done, quick, quick_and_wide, reason};
pub use rules::Rule;
pub use server::{Auth, Faults, Seen, Settings};
pub use switch::{Fault, FaultKind, Location, RequestKind, RetryAfter};
