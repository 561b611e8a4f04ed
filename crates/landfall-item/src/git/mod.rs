//! A git repository: branches and tags with everything that they need, carried as packs.
//!
//! Landfall writes the packs itself (`landfall_git`), so that a lock gives the same bytes on every
//! machine. A newer lock adds a pack with the new commits, and keeps the packs before it.

mod kind;
mod large_files;
mod locked;
mod manifest_entry;
mod pack_writing;
mod request;
mod resolvable;
mod resolve;
mod signatures;
mod verify;

pub(crate) use self::kind::{entry, own_repository};
pub use self::locked::{
    LockedGitRef, LockedGitRepository, LockedGitSubmodule, LockedLargeFile, VerifiedGitRef,
};
pub(crate) use self::locked::{normal_url, refs_digest, url_of};
pub(crate) use self::manifest_entry::{GitEntry, check_ref};
pub use self::request::GitRequest;
