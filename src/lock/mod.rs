//! Resolves the names in a manifest to digests, each by its kind, and compares locks.
//!
//! Start at [`lock`]. Items that were locked before keep their pins without a request, unless the
//! [`PinPolicy`] requires one. Charts may add images and other charts, and git repositories may add
//! their submodules, so locking runs in rounds.
//!
//! [`PinPolicy`]: landfall_item::PinPolicy

mod change;
mod changelogs;
mod chart_images;
mod diff;
mod memory;
mod packages;
mod run;
mod sorted_results;
mod submodules;
mod versions;

pub(crate) use change::{LockChange, PackageChange};
pub(crate) use changelogs::add_changelogs;
pub(crate) use chart_images::ChartImages;
pub(crate) use diff::{DiffSide, EndpointChange, diff, diff_endpoints, diff_sides};
pub(crate) use memory::{recall, remember};
pub use run::Locked;
pub(crate) use run::lock;
