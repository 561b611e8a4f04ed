//! Git objects: their ids, types and contents, and the names of refs.

mod commit;
mod config_file;
mod id;
mod tree;

pub use self::commit::{CommitLinks, SignedObject, TagTarget, tag_name};
pub(crate) use self::config_file::parse_gitmodules;
pub use self::config_file::{LfsConfig, LfsPointer};
pub use self::id::{GitObjectKind, ObjectId, is_ref_name};
pub use self::tree::{EntryMode, TreeEntries, TreeEntry};
