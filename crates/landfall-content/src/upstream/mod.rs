//! The connected side as a source: registries for images, web servers for files, git servers for
//! repositories.

mod file;
mod git_remote;
mod lfs_transfer;
mod upstreams;

pub use self::file::{expect_file, expect_success, get_file, head_file, is_page, post_json};
pub use self::git_remote::{
    FetchedPack, GitPush, GitReceiver, PackFacts, fetch_pack, git_error, list_refs, push_refs,
    pushed_refs, write_pack_file, write_packs,
};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::lfs_transfer::fuzz;
pub use self::lfs_transfer::{
    OfferedLargeFiles, missing_large_files, offered_large_files, upload_large_files,
};
pub use self::upstreams::Upstreams;
