//! The objects that a ref or a request needs, in a fixed order; large files, their servers, and
//! submodules.

mod commits;
mod config_files;
mod large_files;
mod plan;
mod reach;
mod selection;
mod shallow;
mod submodules;

pub use config_files::{RootFile, RootFiles};
pub use large_files::large_files;
pub use plan::GitPackPlan;
pub use reach::{IncompleteTip, check_complete, reaches};
pub use selection::SelectedObjects;
pub use shallow::shallow_boundary;
pub use submodules::{PinnedSubmodule, pinned_submodules};
