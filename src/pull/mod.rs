//! GET IT. Everything that a lock names, into the store.

mod run;

pub use run::PullError;
pub(crate) use run::pull;
