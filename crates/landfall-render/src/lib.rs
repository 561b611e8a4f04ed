//! Renders configuration that makes nodes, clusters and other programs use the site.
//!
//! Each platform is a file or folder in `platforms/` and a row in [`PLATFORMS`]; the other files
//! contain code that several platforms share. The crate may import all crates except
//! `landfall-bundle` and `landfall-serve`. Begin with `platform.rs` and `platforms/mod.rs`.

mod kubernetes_objects;
mod merge_into;
mod node_registry;
mod platform;
mod platforms;
mod proxy;
mod render;
mod rendered_file;
mod signature_policy;

pub use crate::merge_into::{MergedFile, merge_into, site_facts};
pub use crate::platform::{
    InputFlag, OutputForm, OverlayDetails, OverlayKey, PlatformInput, PlatformSettings,
    RenderPlatform, RenderRequest, RenderedOutput,
};
pub use crate::platforms::PLATFORMS;
pub use crate::proxy::{NoProxyDialect, NoProxyEntries};
pub use crate::render::render;
pub use crate::rendered_file::{RenderedFile, has_header_of, stale_files, write_files};
