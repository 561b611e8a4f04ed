//! A git repository in the lock: its fields, and how they are parsed and written.

use super::request::GitRequest;
use crate::ManifestResult;
use landfall_content::{GitPack, GitPacks, LfsServer};
use landfall_git::{LfsPointer, ObjectId, is_ref_name};
use landfall_model::document::SourceSpan;
use landfall_model::{Algorithm, Descriptor, Digest, has_userinfo, media_type, serde_as_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use url::Url;

/// A git repository in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedGitRepository {
    /// The name of the repository: its URL with the scheme `git+https` or `git+http`.
    pub name: String,
    /// SHA-256 of the manifest of the artifact that carries the repository.
    pub digest: Digest,
    /// The path of the working copy, bare repository or git bundle that has the objects, relative
    /// to the folder of the lock; empty if it is not below that folder. `None` for a repository of
    /// a git server.
    pub path: Option<String>,
    /// The requested branches, tags and commit ids, and patterns for tags, which are written
    /// between slashes.
    pub wanted: Vec<String>,
    /// The branch that a clone checks out, if a branch is carried.
    pub head: Option<String>,
    /// The branches and tags, sorted by name.
    pub refs: Vec<LockedGitRef>,
    /// The keys that signed the refs, in the order of the refs; empty if no signature is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verified: Vec<VerifiedGitRef>,
    /// How many commits of each history are carried; all if `None`.
    pub depth: Option<u32>,
    /// The commits whose parents are not carried, sorted.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        with = "landfall_content::git_object_ids"
    )]
    pub shallow: Vec<ObjectId>,
    /// The submodules of all refs, sorted. `None` if they were not looked up.
    pub submodules: Option<Vec<LockedGitSubmodule>>,
    /// The URL of the Git LFS server in the manifest. `None` if the repository names its server.
    #[serde(default, rename = "lfsServer")]
    pub lfs_server: Option<String>,
    /// The large files (Git LFS) in the trees of all refs, sorted. `None` if they are not
    /// carried.
    #[serde(default, rename = "largeFiles")]
    pub large_files: Option<Vec<LockedLargeFile>>,
    /// The packs with the objects, the oldest first.
    pub packs: Vec<GitPack>,
}

/// A branch or tag of a locked repository.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{name} {id}")]
pub struct LockedGitRef {
    /// The full name, as in `refs/heads/main`.
    pub name: String,
    /// The commit, or the tag itself if it is annotated.
    pub id: ObjectId,
}

/// The digest of the names and objects of `refs`. An update compares it with that of upstream to
/// find out whether one of them moved. Tags that are added for commits cannot move, and are left
/// out: the lock also has those of commits that other repositories need as submodules.
pub(crate) fn refs_digest(refs: &[LockedGitRef]) -> Digest {
    let moving = refs
        .iter()
        .filter(|one| one.name != GitRequest::commit_tag(one.id));
    let lines: String = moving.map(|one| format!("{one}\n")).collect();
    Digest::sha256(lines.as_bytes())
}

/// The verified signature of a ref: of its annotated tag, or of its commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifiedGitRef {
    /// The full name of the ref.
    pub r#ref: String,
    /// The key that made the signature.
    pub key: String,
}

/// A submodule of a locked repository: a commit of another repository. The lock contains that
/// repository too, unless the manifest excludes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{name} {commit}")]
pub struct LockedGitSubmodule {
    /// The name of the other repository in the lock.
    pub name: String,
    /// The commit.
    pub commit: ObjectId,
}

/// A large file of a locked repository. The objects of the repository contain a pointer of Git LFS
/// to the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedLargeFile {
    /// SHA-256 of the file.
    pub digest: Digest,
    /// The size of the file in bytes.
    pub size: u64,
    /// The URL of the Git LFS server that `.lfsconfig` in the repository names. `None` if the file
    /// is at the server of the manifest, or at that of the repository.
    pub server: Option<String>,
}

impl LockedGitRepository {
    /// A repository without refs and packs.
    #[cfg(any(test, feature = "testkit"))]
    pub fn without_refs(url: &str) -> LockedGitRepository {
        LockedGitRepository {
            name: format!("{}{url}", GitRequest::PREFIX),
            digest: Digest::sha256(url.as_bytes()),
            path: None,
            wanted: Vec::new(),
            head: None,
            refs: Vec::new(),
            verified: Vec::new(),
            depth: None,
            shallow: Vec::new(),
            submodules: None,
            lfs_server: None,
            large_files: None,
            packs: Vec::new(),
        }
    }

    /// The http or https URL of the repository.
    pub fn url(&self) -> &str {
        self.name
            .strip_prefix(GitRequest::PREFIX)
            .unwrap_or(&self.name)
    }

    /// The URLs by which documents name the repository: the locked URL, and that URL with `.git`
    /// added. `.git` is never removed, because the result may be a link to a web page.
    pub fn urls(&self) -> Vec<String> {
        let url = self.url();
        let mut urls = vec![url.to_owned()];
        if !url.ends_with(".git") {
            urls.push(format!("{url}.git"));
        }
        urls
    }

    /// The Git LFS server from which `file`, a large file of this repository, is fetched.
    pub fn server_of(&self, file: &LockedLargeFile) -> LfsServer {
        match (&file.server, &self.lfs_server) {
            (Some(url), _) => LfsServer {
                url: url.clone(),
                named_by: Some(self.url().to_owned()),
            },
            (None, Some(url)) => LfsServer {
                url: url.clone(),
                named_by: None,
            },
            (None, None) => LfsServer::of_repository(self.url()),
        }
    }

    /// The URLs of the Git LFS servers that clients of the repository would use and that are not at
    /// the URL of the repository, sorted.
    pub fn other_lfs_servers(&self) -> BTreeSet<&str> {
        let files = self.large_files.iter().flatten();
        let mut servers: BTreeSet<&str> = files.filter_map(|file| file.server.as_deref()).collect();
        servers.extend(self.lfs_server.as_deref());
        servers
    }

    /// A note for people whose clients get the repository, but not from `landfall serve`: the
    /// clients request the large files at the server that `.lfsconfig` names, not at `url`. `None`
    /// if there is no such server.
    pub fn lfs_note(&self, url: &str) -> Option<String> {
        let servers: Vec<&str> = self.other_lfs_servers().into_iter().collect();
        if servers.is_empty() {
            return None;
        }
        Some(format!(
            "{}: the repository has its large files at {}; let clients run \
             `git config --global url.NEW.insteadOf {}`, where NEW is {url}",
            self.name,
            servers.join(", "),
            servers[0],
        ))
    }

    /// The packs, with everything that is needed to fetch them.
    pub fn git_packs(&self) -> GitPacks {
        GitPacks {
            url: self.url().to_owned(),
            path: self.path.clone(),
            packs: self.packs.clone(),
            depth: self.depth,
            shallow: self.shallow.clone(),
        }
    }
}

serde_as_text!(LockedGitRef);

impl FromStr for LockedGitRef {
    type Err = String;

    fn from_str(text: &str) -> Result<LockedGitRef, String> {
        let (name, id) = text
            .split_once(' ')
            .ok_or("a ref is written as `<name> <id>`")?;
        if !is_ref_name(name) {
            return Err(format!(
                "'{}' is not the name of a ref",
                name.escape_default()
            ));
        }
        Ok(LockedGitRef {
            name: name.to_owned(),
            id: id.parse()?,
        })
    }
}

impl LockedLargeFile {
    /// Digest, size and media type.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(self.digest.clone(), self.size, media_type::OCTETS)
    }
}

impl From<LfsPointer> for LockedLargeFile {
    fn from(pointer: LfsPointer) -> LockedLargeFile {
        let LfsPointer { digest, size } = pointer;
        LockedLargeFile {
            digest,
            size,
            server: None,
        }
    }
}

serde_as_text!(LockedLargeFile);

impl FromStr for LockedLargeFile {
    type Err = String;

    fn from_str(text: &str) -> Result<LockedLargeFile, String> {
        let found = text.split_once(' ').and_then(|(digest, size)| {
            let digest: Digest = digest.parse().ok()?;
            let (size, server) = match size.split_once(' ') {
                Some((size, server)) => (size, Some(lfs_url(server).ok()?)),
                None => (size, None),
            };
            let size = size.parse().ok()?;
            (digest.algorithm() == Algorithm::Sha256).then_some(LockedLargeFile {
                digest,
                size,
                server,
            })
        });
        found.ok_or_else(|| {
            "a large file is written as `sha256:<hex> <size>`, optionally with the URL of its \
             Git LFS server"
                .into()
        })
    }
}

serde_as_text!(LockedGitSubmodule);

impl FromStr for LockedGitSubmodule {
    type Err = String;

    fn from_str(text: &str) -> Result<LockedGitSubmodule, String> {
        let (name, commit) = text
            .split_once(' ')
            .ok_or("a submodule is written as `<name> <commit>`")?;
        let url = name.strip_prefix(GitRequest::PREFIX).unwrap_or_default();
        if normal_url(url).as_deref() != Ok(url) {
            return Err(format!(
                "'{}' is not the name of a git repository",
                name.escape_default()
            ));
        }
        Ok(LockedGitSubmodule {
            name: name.to_owned(),
            commit: commit.parse()?,
        })
    }
}

impl fmt::Display for LockedLargeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.digest, self.size)?;
        self.server.iter().try_for_each(|url| write!(f, " {url}"))
    }
}

// URLs of repositories.

/// Parses the URL of a repository in a manifest and returns its normal form.
pub(crate) fn url_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    normal_url(text).map_err(|why| {
        let help = "write it as https://host/path/name.git; credentials are configured in the \
                    site file (`upstreams`)";
        span.fault(why, Some(help))
    })
}

/// The URL of a Git LFS server as requests and locks have it: without a slash at its end, and
/// without a user name or password, because accounts come from the site. Otherwise as written, so
/// that `insteadOf` of a client's configuration matches it. The error says why `text` is not such a
/// URL.
pub(super) fn lfs_url(text: &str) -> Result<String, String> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let url = Url::parse(text).ok().filter(|_| !text.contains(is_odd));
    let url = url.filter(|url| text.contains("://") && url.has_host());
    match url.as_ref().map(Url::scheme) {
        Some("http" | "https") => {}
        Some("ssh" | "git+ssh" | "ssh+git") => {
            return Err("large files are fetched over http or https, not over ssh".into());
        }
        // `user@host:path`, as git writes it
        _ if text.contains('@') && !text.contains("://") => {
            return Err("large files are fetched over http or https, not over ssh".into());
        }
        _ => return Err("it is not an http or https URL".into()),
    }
    if text.contains(['?', '#']) {
        return Err("the URL of a Git LFS server has no query and no fragment".into());
    }
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    Ok(format!("{scheme}://{host}{path}")
        .trim_end_matches('/')
        .to_owned())
}

/// The normal form of the URL of a repository. The error says why `text` is not such a URL.
pub(crate) fn normal_url(text: &str) -> Result<String, String> {
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("this URL contains white space".into());
    }
    let no_repository = || "this is not the URL of a repository".to_owned();
    let url = Url::parse(text)
        .ok()
        .filter(|url| text.contains("://") && url.has_host())
        .ok_or_else(no_repository)?;
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        return Err(format!(
            "repositories are fetched over http or https, not over {scheme}"
        ));
    }
    if has_userinfo(&url) {
        return Err(
            "a URL must not contain a user name or password: manifests and locks are not secret"
                .into(),
        );
    }
    let has_path = !url.path().trim_end_matches('/').is_empty();
    if url.query().is_some() || url.fragment().is_some() || !has_path {
        return Err(no_repository());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}
