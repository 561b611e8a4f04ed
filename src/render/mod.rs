//! SET IT UP. What `landfall render` writes: configuration that makes others use the site. Each platform is one file
//! and one row.

mod asked;
mod containerd;
mod error;
mod file;
mod folder;
mod helm_values;
mod mirrors;
mod no_proxy;
mod no_proxy_list;
mod overlay;
mod pem;
mod platform;
mod quote;
mod request;
mod run;
mod settings;
mod site_proxy;
mod site_registry;
mod systemd;

pub(crate) use error::RenderError;
pub(crate) use file::RenderedFile;
pub(crate) use folder::{left_behind, write};
pub(crate) use platform::{Flag, Input, Output, Platform, Spec, Writes};
pub(crate) use request::Request;
pub(crate) use run::run;
pub(crate) use settings::Settings;

/// Every platform, in the order in which the command line lists them.
pub(crate) const PLATFORMS: &[&dyn Platform] = &[
    &helm_values::HelmValues,
    &no_proxy_list::NoProxyList,
    &containerd::Containerd,
    &systemd::KUBELET,
    &systemd::SYSTEMD,
];
