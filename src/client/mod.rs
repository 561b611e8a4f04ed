//! The API for programs: a [`Client`] is set up once, from a site, options and the environment, and
//! has the operations that need a network. The command line is one of these programs.

mod builder;
mod bundle_upload;
mod deliver;
mod error;
#[cfg(feature = "cli")]
mod failing_items;
mod handle;
mod lock;
#[cfg(feature = "cli")]
mod patches;
mod pull;
#[cfg(feature = "cli")]
mod refresh;
mod stores;
mod write;

pub use builder::ClientBuilder;
pub(crate) use bundle_upload::BundleUpload;
pub use error::ClientError;
pub use handle::Client;
#[cfg(feature = "cli")]
pub(crate) use patches::DeliveredBundles;
pub use pull::{BundleOptions, PulledBundle};
#[cfg(feature = "cli")]
pub(crate) use refresh::{RefreshBase, RefreshRequest, Refreshed, RefreshedBundle, missing_items};
pub(crate) use write::{LockFileState, PreviousLock};
