//! `tkg`: clusters of Tanzu Kubernetes Grid behind the proxy, with images from the site's registry.
//!
//! - `platform.rs`: the settings, the list of files, and the variables of a cluster
//!   configuration, with its names and the repository of its images.
//! - `machines.rs`: the files and commands of machines, and the Secrets of addons.

mod machines;
mod platform;

pub(super) use self::platform::TkgPlatform;
