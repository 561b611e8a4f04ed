//! `kubermatic`: KKP's configuration, a Seed's datacenters, the certificates, profiles of machines;
//! and the node settings of releases up to 2.12.
//!
//! - `platform.rs`: the settings, and which files there are.
//! - `configuration.rs`: the `KubermaticConfiguration`.
//! - `seed.rs`: the Seed, and the datacenters of old releases.
//! - `profile.rs`: profiles of operating-system-manager; `machine_setup.rs` has what their machines
//!   do first.
//! - `site.rs`: what all of them are told of the site.

mod configuration;
mod machine_setup;
mod platform;
mod profile;
mod seed;
mod site;

pub(super) use platform::KubermaticPlatform;
