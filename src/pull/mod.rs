//! GET IT. Everything that a lock names, into the store.

mod run;
mod share;
mod signatures;
#[cfg(test)]
mod together;

pub use run::PullError;
pub(crate) use run::pull;
pub(crate) use share::Share;
pub(crate) use signatures::check_packages;
