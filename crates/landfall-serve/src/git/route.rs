//! Determines the repository and the service that a request names.

use crate::catalog::GitTable;
use crate::request_host::RequestHosts;
use crate::response::RequestError;
use landfall_item::LockedGitRepository;
use landfall_model::Digest;
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// A request of git's smart HTTP protocol.
pub(crate) struct GitRoute {
    pub(super) repository: Arc<LockedGitRepository>,
    pub(super) service: GitService,
}

/// What a request of git's protocol asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GitService {
    /// `info/refs`: the refs, or the capabilities of the server.
    Advertisement,
    /// `git-upload-pack`: a command.
    UploadPack,
    /// A batch request of Git LFS.
    LargeFiles,
    /// The large file with this digest.
    LargeFile(Digest),
}

/// The path of the batch API of Git LFS, relative to the repository.
const LARGE_FILE_BATCH: &str = "/info/lfs/objects/batch";
/// The folder of large files, relative to the repository.
const LARGE_FILES: &str = "/info/lfs/objects/";

impl GitService {
    /// The path of the repository, and the service that `path` asks for.
    fn parse(path: &str) -> Option<(&str, GitService)> {
        if let Some(base) = path.strip_suffix("/info/refs") {
            return Some((base, GitService::Advertisement));
        }
        if let Some(base) = path.strip_suffix("/git-upload-pack") {
            return Some((base, GitService::UploadPack));
        }
        if let Some(base) = path.strip_suffix(LARGE_FILE_BATCH) {
            return Some((base, GitService::LargeFiles));
        }
        let (base, hex) = path.rsplit_once(LARGE_FILES)?;
        let digest = format!("sha256:{hex}").parse().ok()?;
        Some((base, GitService::LargeFile(digest)))
    }
}

/// The folders below which repositories are served as HOST/PATH. Like files, repositories are also
/// available at the root, so that the URL in `files` of a site works for both.
const FOLDERS: [&str; 3] = ["/git/", "/files/", "/"];

impl GitRoute {
    /// Parses the path of a request. Returns `None` if it is not a path of git's protocol. If the
    /// repository is not served, returns an error below `/git/`, and `None` elsewhere.
    pub(crate) fn parse(
        repositories: &GitTable,
        hosts: &RequestHosts,
        path: &str,
    ) -> Option<Result<GitRoute, RequestError>> {
        let path = percent_decode_str(path).decode_utf8().ok()?;
        let (base, service) = GitService::parse(&path)?;
        // a repository of the host that the client names takes precedence, as with files
        let found = hosts
            .names()
            .find_map(|host| repositories.find(&format!("{host}{base}")));
        let mut names = FOLDERS
            .iter()
            .filter_map(|folder| base.strip_prefix(folder));
        let found = found.or_else(|| names.find_map(|name| repositories.find(name)));
        match found {
            Some(found) => Some(Ok(GitRoute {
                repository: found.clone(),
                service,
            })),
            None => base.strip_prefix(FOLDERS[0]).map(|name| {
                let message = format!("the repository {name} is not served here");
                Err(RequestError::not_found("NAME_UNKNOWN", message))
            }),
        }
    }
}
