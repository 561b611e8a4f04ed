//! A git repository: branches and tags with everything that they need, carried as packs.
//!
//! Landfall writes the packs itself (`landfall_git`), so that a lock gives the same bytes on every
//! machine. A newer lock adds a pack with the new commits, and keeps the packs before it.

mod choose;
mod kind;
mod large_files;
mod locked;
mod manifest_entry;
mod pack_writing;
mod parts;
mod repository_url;
mod request;
mod resolvable;
mod resolve;
mod signatures;
mod submodules;
mod verify;

pub use locked::{
    LockedGitPack, LockedGitRef, LockedGitRepository, LockedGitSubmodule, LockedLargeFile,
    VerifiedGitRef,
};
pub(crate) use manifest_entry::GitEntry;
pub use request::GitRequest;
pub use submodules::SubmoduleError;
pub use verify::GitContentError;
