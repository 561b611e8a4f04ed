//! DELIVER IT. From a bundle, a store or straight from upstream into a registry.

mod attach;
mod deliver;
mod plan;
mod receipt;
mod run;

pub use plan::{Delivery, Standing};
pub use receipt::Receipt;
pub use run::{Options, PushError, Pushed, Replaced, push};
