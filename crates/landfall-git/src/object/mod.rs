//! Git objects: their ids, types and contents, and the names of refs.

mod commit;
mod id;
mod kind;
mod ref_name;
mod tree;
mod tree_name;

pub use commit::{CommitLinks, TagTarget};
pub use id::ObjectId;
pub use kind::GitObjectKind;
pub use ref_name::is_ref_name;
pub use tree::{EntryMode, TreeEntries, TreeEntry};
