//! A registry and file server for tests that fails on demand: each fault is a [`FaultKind`], added with
//! [`Faults::set_faults`] for requests of one kind ([`RequestKind`]), a number of times.

mod answers;
mod content;
mod rig;
mod server;
mod switch;
mod wire;

pub use content::Content;
pub use rig::{Rig, quick, quick_and_wide};
pub use server::{Auth, Faults, Seen, Settings};
pub use switch::{Fault, FaultKind, Location, RequestKind, RetryAfter};
