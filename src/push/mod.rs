//! DELIVER IT. From a bundle, a store or straight from upstream into a registry.

mod attach;
mod deliver;
mod lacking;
mod left_out;
mod names;
mod plan;
mod preflight;
mod receipt;
mod refusals;
mod run;

pub use lacking::{Lack, Lacking, lacking};
pub use left_out::LeftOut;
pub use plan::{Delivery, Standing};
pub use preflight::{Problem, ProblemKind};
pub use receipt::{Delivered, Receipt};
pub use run::{Moved, Options, PushError, Pushed, Replaced, push};
