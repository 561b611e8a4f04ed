//! SET IT UP. What `landfall render` writes: configuration that makes others use the site. Each platform is one file
//! and one row.

mod error;
mod helm_values;
mod overlay;
mod platform;

pub(crate) use error::RenderError;
pub(crate) use platform::{Input, Platform, Request};

/// Every platform, in the order in which the command line lists them.
pub(crate) const PLATFORMS: &[&dyn Platform] = &[&helm_values::HelmValues];
