//! The API for programs: a [`Client`] is set up once, from a site, options and the environment, and
//! has the operations that need a network. The command line is one of these programs.

mod builder;
mod deliver;
#[cfg(feature = "cli")]
mod failing_items;
mod lock;
#[cfg(feature = "cli")]
mod patches;
mod pull;
#[cfg(feature = "cli")]
mod refresh;

pub use self::builder::ClientBuilder;
use self::builder::stopped;
pub use self::deliver::Client;
pub(crate) use self::lock::{LockFileState, PreviousLock};
#[cfg(feature = "cli")]
pub(crate) use self::patches::DeliveredBundles;
pub(crate) use self::pull::BundleUpload;
pub use self::pull::{BundleOptions, PulledBundle};
#[cfg(feature = "cli")]
pub(crate) use self::refresh::{
    RefreshBase, RefreshRequest, Refreshed, RefreshedBundle, missing_items, unnamed_series,
};
