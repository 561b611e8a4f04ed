//! Resolves the names in a manifest to digests, each by its kind, and compares locks.
//!
//! Start at [`lock`]. Items that were locked before keep their pins without a request, unless the
//! [`PinPolicy`] requires one. Charts may add images and other charts, and git repositories may add
//! their submodules, so locking runs in rounds.
//!
//! [`PinPolicy`]: landfall_item::PinPolicy

mod chart_images;
mod diff;
mod run;

pub(crate) use self::chart_images::ChartImages;
pub(crate) use self::diff::{
    DiffSide, EndpointChange, LockChange, PackageChange, add_changelogs, diff, diff_endpoints,
    diff_sides,
};
pub use self::run::Locked;
pub(crate) use self::run::{lock, recall, remember};
