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
#[cfg(feature = "cli")]
mod prune;
mod receipt;
mod referrers;
mod refusal;
mod run;
mod slots;
#[cfg(feature = "cli")]
mod status;
mod uploader;

pub use error::PushError;
pub(crate) use missing::{Missing, missing};
pub use omitted::Omitted;
pub use options::Options;
pub use outcome::Pushed;
pub(crate) use problem::ProblemKind;
#[cfg(feature = "cli")]
pub(crate) use prune::{Needed, Pruned, prune};
pub(crate) use receipt::{PrunedManifest, Receipt};
pub(crate) use run::push;
#[cfg(feature = "cli")]
pub(crate) use status::{Stands, State, status};
