//! A request for a git repository.

use super::signatures::RefRules;
use crate::LocalPlace;
use crate::resolver::Resolver;
use landfall_git::ObjectId;
use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::sign::{GitSigners, SignatureTime};
use std::collections::HashSet;

/// A request for branches, tags and commits of one git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRequest {
    /// The name in the lock: the URL of the repository with the scheme `git+https` or `git+http`.
    pub name: String,
    /// The http or https URL of the repository.
    pub url: String,
    /// The repository or git bundle on this machine that has the objects. `None` if they are
    /// fetched from `url`.
    pub place: Option<LocalPlace>,
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
    /// Lists of keys for the signatures. Each ref must be signed by one key of each list. Empty if
    /// no signature is needed.
    pub signers: Vec<Vec<GitSigners>>,
    /// The versions to which `landfall update` may move the tag.
    pub update: Option<UpdateRule>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

impl GitRequest {
    /// The scheme prefix by which names of repositories differ from URLs of files.
    pub(crate) const PREFIX: &'static str = "git+";

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

    /// The request with the keys that its entry demands, and those of the rules of `resolver`.
    pub(super) fn with_rules(&self, resolver: &Resolver) -> GitRequest {
        let mut request = self.clone();
        for signers in resolver.signatures.git_signers(&self.name) {
            if !request.signers.contains(&signers) {
                request.signers.push(signers);
            }
        }
        request
    }

    /// Whether the refs must be signed.
    pub fn is_signed(&self, resolver: &Resolver) -> bool {
        !self.with_rules(resolver).signers.is_empty()
    }

    /// The signatures that the refs need now.
    pub(super) fn ref_rules(&self) -> RefRules<'_> {
        RefRules {
            signers: &self.signers,
            named: self.tags_signed_by_commits(),
            time: SignatureTime::Now,
        }
    }

    /// The tags for which the signature of their commit is enough: those that the manifest names,
    /// and those that are added for commits. Only a signed tag proves its name, so a server could
    /// offer an old signed commit under the name of a new version. Tags that a pattern or an update
    /// policy chooses must therefore be signed themselves.
    fn tags_signed_by_commits(&self) -> HashSet<String> {
        let wanted = self.wanted.iter();
        let is_named =
            |one: &&String| self.update.is_none() || GitRequest::commit_in(one).is_some();
        wanted
            .filter(is_named)
            .filter_map(|one| GitRequest::named_tag(one))
            .collect()
    }

    /// The tag that an element of `wanted` names; `None` if it is a pattern.
    pub(super) fn named_tag(wanted: &str) -> Option<String> {
        match (
            GitRequest::commit_in(wanted),
            GitRequest::pattern_in(wanted),
        ) {
            (Some(commit), _) => Some(GitRequest::commit_tag(commit)),
            (None, None) if wanted.starts_with("refs/") => Some(wanted.to_owned()),
            (None, None) => Some(format!("refs/tags/{wanted}")),
            (None, Some(_)) => None,
        }
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
