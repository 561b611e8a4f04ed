//! What the set-up of a machine fetches and installs: scripts, systemd units, cloud-init and
//! Ignition. A manifest is drafted of it; an audit asks the lock for the packages.

mod commands;
mod installs;
mod machine_text;

pub use installs::{Install, Installs};
pub use machine_text::machine_installs;
pub(super) use machine_text::packages_in;
