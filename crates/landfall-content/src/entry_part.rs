//! One blob or manifest of a lock entry, and the origin of its bytes.

use super::git_packs::GitPacks;
use landfall_model::{Descriptor, Digest};
use std::sync::Arc;

/// One blob or manifest of a [`LockEntry`](crate::LockEntry).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPart {
    /// Digest, size and media type.
    pub descriptor: Descriptor,
    /// The origin of its bytes.
    pub origin: PartOrigin,
}

/// The origin of the bytes of an [`EntryPart`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartOrigin {
    /// A manifest of a registry, requested by digest.
    Manifest {
        /// The host of the registry, as in the lock.
        registry: Arc<str>,
        /// The repository, without the host.
        repository: Arc<str>,
    },
    /// A blob of a registry.
    Blob {
        /// The host of the registry, as in the lock.
        registry: Arc<str>,
        /// The repository, without the host.
        repository: Arc<str>,
    },
    /// A foreign layer: the registry need not have it, and URLs for it are in the manifests of its
    /// image.
    Foreign {
        /// The host of the registry, as in the lock.
        registry: Arc<str>,
        /// The repository, without the host.
        repository: Arc<str>,
        /// The manifests of the image, which list the URLs.
        manifests: Vec<Descriptor>,
    },
    /// A file on a web server.
    Url(String),
    /// A file with several URLs for the same bytes. If a URL does not provide the file, the next
    /// one is tried.
    Urls(Vec<String>),
    /// A pack that is written from the objects of a git repository.
    Git {
        /// The repository and all its packs.
        repository: Arc<GitPacks>,
        /// The index of this pack in `repository.packs`.
        pack: usize,
    },
    /// A large file of a git repository, requested by digest from its Git LFS server.
    LargeFile(Arc<LfsServer>),
    /// Computed from the lock, so nothing is fetched.
    Computed(Vec<u8>),
    /// The index `of` with only the children in `keep` ([`landfall_model::trim_index`]).
    Trimmed {
        /// The untrimmed index, a part of the same entry.
        of: Descriptor,
        /// The digests of the children that are kept.
        keep: std::collections::BTreeSet<Digest>,
    },
}

impl PartOrigin {
    /// Returns the URL of a file on a web server; the first if it has several.
    pub fn url(&self) -> Option<&str> {
        match self {
            PartOrigin::Url(url) => Some(url),
            PartOrigin::Urls(urls) => urls.first().map(String::as_str),
            _ => None,
        }
    }
}

impl EntryPart {
    /// Returns the registry or web server that has the bytes, as the lock names it, or an empty
    /// string if they are computed.
    pub fn host(&self) -> &str {
        match &self.origin {
            PartOrigin::Manifest { registry, .. }
            | PartOrigin::Blob { registry, .. }
            | PartOrigin::Foreign { registry, .. } => registry,
            PartOrigin::Git { repository, .. } => host_of(&repository.url),
            PartOrigin::LargeFile(server) => host_of(&server.url),
            origin => origin.url().map_or("", host_of),
        }
    }

    /// Whether a push delivers the part as a manifest, not as a blob.
    pub fn is_manifest(&self) -> bool {
        match &self.origin {
            PartOrigin::Manifest { .. } | PartOrigin::Trimmed { .. } => true,
            PartOrigin::Blob { .. }
            | PartOrigin::Foreign { .. }
            | PartOrigin::Url(_)
            | PartOrigin::Urls(_)
            | PartOrigin::Git { .. }
            | PartOrigin::LargeFile(_) => false,
            // the computed parts are the manifests and configs of items that are not images
            PartOrigin::Computed(_) => {
                landfall_model::media_type::is_manifest(&self.descriptor.media_type)
            }
        }
    }

    /// Whether the bytes must be stored. Other parts are computed from the lock or another part.
    pub fn is_stored(&self) -> bool {
        !matches!(
            self.origin,
            PartOrigin::Computed(_) | PartOrigin::Trimmed { .. }
        )
    }
}

/// Returns the host of a URL, with its port: the text between `//` and the next `/`.
fn host_of(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or(url)
}

/// A Git LFS server: the URL of its API, and the repository that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LfsServer {
    /// The URL to which `/objects/batch` is appended.
    pub url: String,
    /// The URL of the repository whose `.lfsconfig` names the server. `None` if the user named the
    /// server or its repository.
    pub named_by: Option<String>,
}

impl LfsServer {
    /// The server of the repository at `url`, unless its `.lfsconfig` names another one (git-lfs,
    /// docs/api/server-discovery.md).
    pub fn of_repository(url: &str) -> LfsServer {
        let ending = if url.ends_with(".git") { "" } else { ".git" };
        LfsServer {
            url: format!("{url}{ending}/info/lfs"),
            named_by: None,
        }
    }
}
