//! Finds the files and packages that the set-up of a machine fetches and installs: in scripts,
//! systemd units, cloud-init and Ignition. `discover` drafts a manifest from them; an audit looks
//! up the packages in the lock.

mod cloud_packages;
mod commands;
mod installs;
mod machine_text;

pub use installs::{MachineInstall, MachineInstalls};
pub use machine_text::machine_installs;
pub(super) use machine_text::{fetches_in, packages_in};
