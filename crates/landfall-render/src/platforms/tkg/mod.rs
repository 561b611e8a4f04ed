//! `tkg`: clusters of Tanzu Kubernetes Grid behind the proxy, with images from the site's registry.
//!
//! - `platform.rs`: the settings, which files there are, and the variables of a cluster's
//!   configuration.
//! - `machines.rs`: the machines' files and commands.
//! - `addons.rs`: the Secrets of addons.
//! - `cluster.rs`: the cluster, and the repository that its images come from.

mod addons;
mod cluster;
mod machines;
mod platform;

pub(super) use platform::TkgPlatform;
