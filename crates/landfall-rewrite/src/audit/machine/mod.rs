//! Finds the files and packages that the set-up of a machine fetches and installs: in scripts,
//! systemd units, cloud-init and Ignition. `discover` drafts a manifest from them; an audit looks
//! up the packages in the lock.

mod cloud_packages;
mod commands;
mod machine_text;

pub use self::commands::{MachineInstall, MachineInstalls};
pub use self::machine_text::machine_installs;
pub(super) use self::machine_text::{fetches_in, packages_in};
