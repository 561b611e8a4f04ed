//! WHAT IT IS EXACTLY. Resolves the names of a manifest to digests, each by its kind.

mod chart_images;
mod diff;
mod memory;
mod run;

pub(crate) use chart_images::ChartImages;
pub(crate) use diff::{Change, EndpointChange, diff, diff_endpoints};
pub(crate) use memory::{recall, remember};
pub use run::Locked;
pub(crate) use run::lock;
