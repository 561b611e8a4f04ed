//! A part: one blob or manifest, and where its bytes come from.

use landfall_model::{Descriptor, Digest};
use std::sync::Arc;

/// One blob or manifest of an [`Entry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPart {
    /// What it is.
    pub descriptor: Descriptor,
    /// Where its bytes come from.
    pub origin: PartOrigin,
}

/// Where the bytes of a [`EntryPart`] come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartOrigin {
    /// A manifest of a registry, asked for by digest in `registry/repository`.
    Manifest {
        /// Registry host, as in the lock.
        registry: Arc<str>,
        /// Repository.
        repository: Arc<str>,
    },
    /// A blob of a registry.
    Blob {
        /// Registry host, as in the lock.
        registry: Arc<str>,
        /// Repository.
        repository: Arc<str>,
    },
    /// A layer that its registry need not have; the manifests of its image name URLs for it.
    Foreign {
        /// Registry host, as in the lock.
        registry: Arc<str>,
        /// Repository.
        repository: Arc<str>,
        /// The image's manifests.
        manifests: Vec<Descriptor>,
    },
    /// A URL.
    Url(String),
    /// Several URLs of the same bytes: the first is its own, and the next is asked where one has it
    /// no more.
    Urls(Vec<String>),
    /// Nowhere: the bytes follow from the lock.
    Computed(Vec<u8>),
    /// The index `of`, less the children that are not in `keep` ([`landfall_model::trim_index`]).
    Trimmed {
        /// The untouched index; it stands in the same entry.
        of: Descriptor,
        /// The digests of its children that are kept.
        keep: std::collections::BTreeSet<Digest>,
    },
}

impl PartOrigin {
    /// Its own URL, where it is one of a web server.
    pub fn url(&self) -> Option<&str> {
        match self {
            PartOrigin::Url(url) => Some(url),
            PartOrigin::Urls(urls) => urls.first().map(String::as_str),
            _ => None,
        }
    }
}

impl EntryPart {
    /// The registry or web server that has its bytes, as the lock names it; empty if they follow
    /// from the lock.
    pub fn host(&self) -> &str {
        match &self.origin {
            PartOrigin::Manifest { registry, .. }
            | PartOrigin::Blob { registry, .. }
            | PartOrigin::Foreign { registry, .. } => registry,
            origin => origin
                .url()
                .map_or("", |url| url.split('/').nth(2).unwrap_or(url)),
        }
    }

    /// Whether it is sent to a registry as a manifest.
    pub fn is_manifest(&self) -> bool {
        match &self.origin {
            PartOrigin::Manifest { .. } | PartOrigin::Trimmed { .. } => true,
            PartOrigin::Blob { .. }
            | PartOrigin::Foreign { .. }
            | PartOrigin::Url(_)
            | PartOrigin::Urls(_) => false,
            PartOrigin::Computed(_) => {
                landfall_model::media_type::is_manifest(&self.descriptor.media_type)
            }
        }
    }

    /// Whether its bytes must be kept: those of others follow from the lock or from another part.
    pub fn is_stored(&self) -> bool {
        !matches!(
            self.origin,
            PartOrigin::Computed(_) | PartOrigin::Trimmed { .. }
        )
    }
}
