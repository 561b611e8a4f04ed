//! Git objects: their ids, types and contents, and the names of refs.

mod commit;
mod config_file;
mod gitmodules;
mod id;
mod kind;
mod lfs_config;
mod lfs_pointer;
mod ref_name;
mod signed_object;
mod tree;
mod tree_name;

pub use commit::{CommitLinks, TagTarget, tag_name};
pub(crate) use gitmodules::parse_gitmodules;
pub use id::ObjectId;
pub use kind::GitObjectKind;
pub use lfs_config::LfsConfig;
pub use lfs_pointer::LfsPointer;
pub use ref_name::is_ref_name;
pub use signed_object::SignedObject;
pub use tree::{EntryMode, TreeEntries, TreeEntry};
