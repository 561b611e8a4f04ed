//! SET IT UP. What `landfall render` writes: configuration that makes others use the site. One file a platform.

mod helm_values;

pub use helm_values::{Key, Overlay, RenderError, helm_values};
