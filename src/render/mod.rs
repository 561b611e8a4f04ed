//! SET IT UP. What `landfall render` writes: configuration that makes others use the site. Each platform is one file
//! and one row of `platforms/`; the rest is what they share.

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

pub(crate) use error::RenderError;
pub(crate) use file::RenderedFile;
pub(crate) use folder::{left_behind, write};
pub(crate) use into::{MergedFile, into};
pub(crate) use no_proxy::{Dialect, NoProxy};
pub(crate) use platform::{Flag, Input, Output, Platform, Spec, Writes};
pub(crate) use platforms::PLATFORMS;
pub(crate) use request::Request;
pub(crate) use run::run;
pub(crate) use settings::Settings;
