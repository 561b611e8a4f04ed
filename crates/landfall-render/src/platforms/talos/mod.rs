//! `talos`: patches of the machine configuration with mirrors, certificates, account, proxy and
//! installer.

mod machine_config;
mod platform;
mod registry_patch;

pub(super) use platform::TalosPlatform;
