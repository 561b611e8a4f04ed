//! SET IT UP. What `landfall render` writes: configuration that makes others use the site. Each platform is one file
//! and one row.

mod error;
mod helm_values;
mod overlay;
mod platform;

pub use error::RenderError;
pub use platform::{Input, Platform, Rendered, Request, Spec};

/// Every platform, in the order in which the command line lists them.
pub const PLATFORMS: &[&dyn Platform] = &[&helm_values::HelmValues];
