//! DELIVER IT. From a bundle, a store or straight from upstream into a registry.

mod blobs;
mod deliver;
mod error;
mod locks;
mod manifests;
mod missing;
mod names;
mod omitted;
mod options;
mod outcome;
mod plan;
mod preflight;
mod presence;
mod problem;
mod receipt;
mod referrers;
mod refusal;
mod run;
mod slots;
mod uploader;

pub use error::PushError;
pub(crate) use missing::{Missing, missing};
pub use omitted::Omitted;
pub use options::Options;
pub use outcome::Pushed;
pub(crate) use problem::ProblemKind;
pub(crate) use receipt::Receipt;
pub(crate) use run::push;
