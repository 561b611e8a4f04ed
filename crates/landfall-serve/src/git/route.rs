//! Determines the repository and the service that a request names.

use crate::catalog::{GitTable, ServedGitRepository};
use crate::request_host::RequestHosts;
use crate::response::RequestError;
use landfall_model::Digest;
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// A request of git's smart HTTP protocol, or of Git LFS.
pub(crate) enum GitRoute {
    /// `info/refs`: the refs of a repository, or the capabilities of the server.
    Advertisement(Arc<ServedGitRepository>),
    /// `git-upload-pack`: a command to a repository.
    UploadPack(Arc<ServedGitRepository>),
    /// A batch request of Git LFS for the large files of these repositories.
    LargeFiles(Vec<Arc<ServedGitRepository>>),
    /// The large file with this digest, of one of these repositories.
    LargeFile(Vec<Arc<ServedGitRepository>>, Digest),
}

/// What a request of git's protocol asks for.
enum GitService {
    Advertisement,
    UploadPack,
    LargeFiles,
    LargeFile(Digest),
}

/// The folder of large files, relative to the URL of a Git LFS server.
const LARGE_FILES: &str = "/objects/";

impl GitService {
    /// The path of the repository or the Git LFS server, and the service that `path` asks for.
    fn parse(path: &str) -> Option<(&str, GitService)> {
        if let Some(base) = path.strip_suffix("/info/refs") {
            return Some((base, GitService::Advertisement));
        }
        if let Some(base) = path.strip_suffix("/git-upload-pack") {
            return Some((base, GitService::UploadPack));
        }
        let (base, name) = path.rsplit_once(LARGE_FILES)?;
        if name == "batch" {
            return Some((base, GitService::LargeFiles));
        }
        let digest = format!("sha256:{name}").parse().ok()?;
        Some((base, GitService::LargeFile(digest)))
    }

    /// The route of this service at `path`, which is `host/path`; `None` if it is not served.
    fn route(&self, repositories: &GitTable, path: &str) -> Option<GitRoute> {
        let repository = || repositories.find(path).cloned();
        let sharing = || Some(repositories.with_lfs_server(path)).filter(|all| !all.is_empty());
        match self {
            GitService::Advertisement => repository().map(GitRoute::Advertisement),
            GitService::UploadPack => repository().map(GitRoute::UploadPack),
            GitService::LargeFiles => sharing().map(GitRoute::LargeFiles),
            GitService::LargeFile(digest) => {
                sharing().map(|all| GitRoute::LargeFile(all, digest.clone()))
            }
        }
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
            .find_map(|host| service.route(repositories, &format!("{host}{base}")));
        let mut names = FOLDERS
            .iter()
            .filter_map(|folder| base.strip_prefix(folder));
        let found = found.or_else(|| names.find_map(|name| service.route(repositories, name)));
        match found {
            Some(found) => Some(Ok(found)),
            None => base.strip_prefix(FOLDERS[0]).map(|name| {
                let message = format!("the repository {name} is not served here");
                Err(RequestError::not_found("NAME_UNKNOWN", message))
            }),
        }
    }
}
