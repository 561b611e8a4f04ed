//! What `landfall render` writes: configuration that makes others use the site. Each platform is
//! one file and one row of `platforms/`; the rest is what they share.
//!
//! It imports all crates but `landfall-bundle` and `landfall-serve`. Begin with `platform.rs` and
//! `platforms/mod.rs`.

mod asked;
mod error;
mod file;
mod folder;
mod host_paths;
mod into;
mod kubernetes;
mod mirrors;
mod no_proxy;
mod packages_key;
mod pem;
mod platform;
mod platforms;
mod pod_proxy;
mod quote;
mod request;
mod run;
mod sandbox;
mod settings;
mod site_proxy;
mod site_registry;
mod static_pods;

pub use error::RenderError;
pub use file::RenderedFile;
pub use folder::{left_behind, write};
pub use into::{MergedFile, into};
pub use no_proxy::{Dialect, NoProxy};
pub use platform::{Flag, Input, Output, Platform, Spec, Writes};
pub use platforms::PLATFORMS;
pub use request::Request;
pub use run::run;
pub use settings::Settings;
