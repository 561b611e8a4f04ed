//! A request for a git repository.

use landfall_git::ObjectId;
use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::sign::GitSigners;
use std::collections::HashSet;

/// A request for branches, tags and commits of one git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRequest {
    /// The name in the lock: the URL of the repository with the scheme `git+https` or `git+http`.
    pub name: String,
    /// The http or https URL of the repository.
    pub url: String,
    /// The branches and tags as the manifest names them, commit ids, and patterns for tags, which
    /// are written between slashes. Sorted.
    pub wanted: Vec<String>,
    /// How many commits of each history are carried; all if `None`.
    pub depth: Option<u32>,
    /// Whether the repositories and commits of its submodules are carried too.
    pub submodules: bool,
    /// Whether the large files (Git LFS) in the trees of its refs are carried.
    pub lfs: bool,
    /// The URL of the Git LFS server, which replaces the one that the repository names.
    pub lfs_server: Option<String>,
    /// The URL of the repository that has this one as a submodule. `None` if the manifest lists
    /// this repository.
    pub named_by: Option<String>,
    /// The number of repositories in the longest chain that leads to this one as a submodule.
    pub level: usize,
    /// The keys for the signatures. Each ref must be signed by one of them. Empty if no signature
    /// is needed.
    pub signers: Vec<GitSigners>,
    /// The versions to which `landfall update` may move the tag.
    pub update: Option<UpdateRule>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

impl GitRequest {
    /// The scheme prefix by which names of repositories differ from URLs of files.
    pub(super) const PREFIX: &'static str = "git+";

    /// Parses an element of `wanted` as a commit id; `None` if it is not one. A branch or tag whose
    /// name is a commit id is not looked up, because it could point to another commit.
    pub(super) fn commit_in(wanted: &str) -> Option<ObjectId> {
        wanted.parse().ok()
    }

    /// The tag that is added for a commit that was requested by its id. Clients can fetch the
    /// commit by this tag or by its id.
    pub(super) fn commit_tag(commit: ObjectId) -> String {
        const DIGITS: usize = 12;
        format!("refs/tags/commit-{:.DIGITS$}", commit.to_string())
    }

    /// The tags for which the signature of their commit is enough: those that the manifest names,
    /// and those that are added for commits. Only a signed tag proves its name, so a server could
    /// offer an old signed commit under the name of a new version. Tags that a pattern or an update
    /// policy chooses must therefore be signed themselves.
    pub(super) fn tags_signed_by_commits(&self) -> HashSet<String> {
        let tags = self.wanted.iter().filter_map(|one| {
            match (GitRequest::commit_in(one), GitRequest::pattern_in(one)) {
                (Some(commit), _) => Some(GitRequest::commit_tag(commit)),
                (None, None) if self.update.is_none() && one.starts_with("refs/") => {
                    Some(one.clone())
                }
                (None, None) if self.update.is_none() => Some(format!("refs/tags/{one}")),
                (None, _) => None,
            }
        });
        tags.collect()
    }

    /// Writes a pattern of tags as an element of `wanted`.
    pub(super) fn pattern(pattern: &str) -> String {
        format!("/{pattern}/")
    }

    /// The pattern in an element of `wanted`; `None` if the element is a name or the id of a
    /// commit.
    pub(super) fn pattern_in(wanted: &str) -> Option<&str> {
        wanted.strip_prefix('/')?.strip_suffix('/')
    }
}
