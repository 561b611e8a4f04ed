//! Renders configuration that makes nodes, clusters and other programs use the site.
//!
//! Each platform is a file or folder in `platforms/` and a row in [`PLATFORMS`]; the other files
//! contain code that several platforms share. The crate may import all crates except
//! `landfall-bundle` and `landfall-serve`. Begin with `platform.rs` and `platforms/mod.rs`.

mod host_paths;
mod kubernetes_objects;
mod merge_into;
mod no_proxy;
mod node_proxy;
mod node_registry;
mod platform;
mod platforms;
mod render;
mod rendered_file;
mod request;
mod settings;
mod signature_policy;

pub use crate::merge_into::{MergedFile, merge_into, site_facts};
pub use crate::no_proxy::{NoProxyDialect, NoProxyEntries};
pub use crate::platform::{
    InputFlag, OutputForm, OverlayDetails, OverlayKey, PlatformInput, PlatformSpec, RenderPlatform,
    RenderedOutput,
};
pub use crate::platforms::PLATFORMS;
pub use crate::render::render;
pub use crate::rendered_file::{RenderedFile, has_header_of, stale_files, write_files};
pub use crate::request::RenderRequest;
pub use crate::settings::PlatformSettings;
