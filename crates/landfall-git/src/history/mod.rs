//! The objects that a ref or a request needs, in a fixed order; large files, their servers, and
//! submodules.

mod plan;
mod reach;
mod selection;
mod submodules;

pub use self::plan::GitPackPlan;
pub use self::reach::{IncompleteTip, check_complete, reaches, shallow_boundary};
pub use self::selection::SelectedObjects;
pub use self::submodules::{PinnedSubmodule, RootFile, RootFiles, large_files, pinned_submodules};
