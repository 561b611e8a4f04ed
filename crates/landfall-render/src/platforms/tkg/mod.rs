//! `tkg`: clusters of Tanzu Kubernetes Grid behind the proxy, with images from the site's registry.
//!
//! - `platform.rs`: the settings, the list of files, and the variables of a cluster configuration.
//! - `machines.rs`: the files and commands of machines.
//! - `addons.rs`: the Secrets of addons.
//! - `cluster.rs`: the names of the cluster, and the repository of its images.

mod machines;
mod platform;

pub(super) use self::platform::TkgPlatform;
