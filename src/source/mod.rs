//! One file a kind of item: what an item of that kind is made of, and where its parts come from.

mod file;
mod foreign;
mod image;
mod upstream;

pub use upstream::{Passing, Upstreams, expect_file, get};

use crate::lock::Lock;
use crate::model::{Descriptor, Digest};
use crate::report::{Item, Kind, Status};
use std::sync::Arc;

/// A lock entry taken apart: everything that must be there for it to be whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What kind.
    pub kind: Kind,
    /// Its name in the lock.
    pub name: String,
    /// The digest that the lock gives it.
    pub digest: Digest,
    /// What `org.opencontainers.image.ref.name` says in a layout's `index.json`.
    pub layout_name: String,
    /// The manifest that stands in a layout's `index.json`.
    pub top: Descriptor,
    /// All its parts in dependency order: blobs, then manifests, children before parents, the top
    /// last. The trimmed index, where there is one, comes before the top.
    pub parts: Vec<Part>,
    /// What refers to it and must stand at a destination before its tag does: children before parents.
    /// Their manifests and blobs are among the parts.
    pub referrers: Vec<Attached>,
}

/// A manifest of an [`Entry`] that refers to another manifest of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// What it is.
    pub descriptor: Descriptor,
    /// Its tag at every destination, where cosign's convention gives it one.
    pub tag: Option<String>,
    /// The manifest that it says it refers to.
    pub subject: Option<Digest>,
    /// Whether it stands under the entry's own index too, as BuildKit's attestations do.
    pub is_child: bool,
}

/// One blob or manifest of an [`Entry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub descriptor: Descriptor,
    /// Where its bytes come from.
    pub from: From,
}

/// Where the bytes of a [`Part`] come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
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
    /// Nowhere: the bytes follow from the lock.
    Computed(Vec<u8>),
    /// The index `of`, less the children that are not in `keep` ([`crate::model::trim_index`]).
    Trimmed {
        /// The untouched index; it stands in the same entry.
        of: Descriptor,
        /// The digests of its children that are kept.
        keep: std::collections::BTreeSet<Digest>,
    },
}

impl Part {
    /// Whether it is sent to a registry as a manifest.
    pub fn is_manifest(&self) -> bool {
        match &self.from {
            From::Manifest { .. } | From::Trimmed { .. } => true,
            From::Blob { .. } | From::Foreign { .. } | From::Url(_) => false,
            From::Computed(_) => crate::model::media_type::is_manifest(&self.descriptor.media_type),
        }
    }

    /// Whether its bytes must be kept: those of others follow from the lock or from another part.
    pub fn is_stored(&self) -> bool {
        !matches!(self.from, From::Computed(_) | From::Trimmed { .. })
    }
}

impl Entry {
    /// Whether the manifest with this digest is part of the entry because it refers to it, and not by
    /// its index.
    pub fn only_refers(&self, digest: &Digest) -> bool {
        self.referrers.iter().any(|one| one.descriptor.digest == *digest && !one.is_child)
    }

    /// It as an item of a report, that is there.
    pub fn item(&self) -> Item {
        Item {
            kind: self.kind,
            name: self.name.clone(),
            digest: Some(self.digest.clone()),
            bytes: Some(self.size()),
            status: Status::Present,
            reason: None,
        }
    }

    /// Size in bytes of all parts, each digest once.
    pub fn size(&self) -> u64 {
        let unique: std::collections::BTreeMap<_, _> =
            self.parts.iter().map(|part| (&part.descriptor.digest, part.descriptor.size)).collect();
        unique.values().sum()
    }
}

/// Every entry of `lock` taken apart, in the lock's order: images, then files.
pub fn entries(lock: &Lock) -> Vec<Entry> {
    each(lock).collect()
}

/// As [`entries`], one at a time: together they take more memory than the lock.
pub fn each(lock: &Lock) -> impl Iterator<Item = Entry> {
    lock.images.iter().map(image::entry).chain(lock.files.iter().map(file::entry))
}

/// One of the [`entries`], by its place among them.
pub fn entry(lock: &Lock, at: usize) -> Entry {
    match lock.images.get(at) {
        Some(image) => image::entry(image),
        None => file::entry(&lock.files[at - lock.images.len()]),
    }
}
