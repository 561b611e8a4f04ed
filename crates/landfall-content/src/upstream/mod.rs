//! The connected side as a source: registries for images, web servers for files, git servers for
//! repositories.

mod file;
mod foreign_layer;
mod git_receiver;
mod git_remote;
mod git_writer;
mod lfs_batch;
mod lfs_transfer;
mod registry_blob;
mod upstreams;

pub use file::expect_success;
pub use file::{expect_file, get_file, head_file, is_page, post_json};
pub use git_receiver::{GitPush, GitReceiver, push_refs, pushed_refs};
pub use git_remote::{FetchedPack, fetch_pack, git_error, list_refs};
pub use git_writer::{PackFacts, write_pack_file, write_packs};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use lfs_batch::fuzz;
pub use lfs_transfer::{
    OfferedLargeFiles, missing_large_files, offered_large_files, upload_large_files,
};
pub use upstreams::Upstreams;
