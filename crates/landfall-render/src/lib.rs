//! Renders configuration that makes nodes, clusters and other programs use the site.
//!
//! Each platform is a file or folder in `platforms/` and a row in [`PLATFORMS`]; the other files
//! contain code that several platforms share. The crate may import all crates except
//! `landfall-bundle` and `landfall-serve`. Begin with `platform.rs` and `platforms/mod.rs`.

mod certificates;
mod credentials;
mod error;
mod host_mirrors;
mod host_paths;
mod image_key;
mod kubernetes_objects;
mod merge_into;
mod missing_destinations;
mod no_proxy;
mod node_proxy;
mod node_registry;
mod object_cluster;
mod output_folder;
mod packages_key;
mod platform;
mod platforms;
mod pod_proxy;
mod render;
mod rendered_file;
mod request;
mod sandbox_image;
mod separate_accounts;
mod settings;
mod signature_policy;
mod site_facts;
mod static_pods;
mod value_quoting;

pub use error::RenderError;
pub use merge_into::{MergedFile, merge_into};
pub use no_proxy::{NoProxyDialect, NoProxyEntries};
pub use output_folder::{stale_files, write_files};
pub use platform::{
    InputFlag, OutputForm, PlatformInput, PlatformSpec, RenderPlatform, RenderedOutput,
};
pub use platforms::PLATFORMS;
pub use render::render;
pub use rendered_file::RenderedFile;
pub use request::RenderRequest;
pub use settings::PlatformSettings;
pub use site_facts::site_facts;
