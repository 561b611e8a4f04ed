//! GET IT. Everything that a lock names, into the store.

mod run;

pub use run::{PullError, pull};
