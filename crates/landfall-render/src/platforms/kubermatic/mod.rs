//! `kubermatic`: the configuration of KKP, the datacenters of a Seed, certificates, profiles of
//! machines, and the node settings of releases up to 2.12.
//!
//! - `platform.rs`: the settings and the list of files.
//! - `configuration.rs`: the `KubermaticConfiguration`, and the values that all objects share.
//! - `seed.rs`: the Seed, and the datacenters of old releases.
//! - `profile.rs`: profiles of operating-system-manager; `machine_setup.rs`: the first steps of
//!   their machines.

mod configuration;
mod machine_setup;
mod platform;
mod profile;
mod seed;

pub(super) use self::platform::KubermaticPlatform;
