//! GET IT. Everything that a lock names, into the store.

mod run;
mod signatures;

pub use run::PullError;
pub(crate) use run::pull;
pub(crate) use signatures::check_packages;
