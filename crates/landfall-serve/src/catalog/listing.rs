//! The entries of the page: bundles, their items, and the manifests that are attached to an item.

use crate::BundleChanges;
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest};
use std::collections::BTreeSet;

/// A bundle as the page lists it.
pub(crate) struct BundleListing {
    pub(crate) name: String,
    pub(crate) digest: Option<Digest>,
    /// The items that a partial bundle lacks, by kind and name.
    pub(crate) missing: Vec<String>,
    /// The keys of its signatures, unverified.
    pub(crate) signatures: Vec<String>,
    pub(crate) items: Vec<ItemListing>,
    pub(crate) changes: Option<BundleChanges>,
}

/// An item as the page lists it.
pub(crate) struct ItemListing {
    pub(crate) kind: EntryKind,
    pub(crate) name: String,
    /// `repository:tag` at this server, or at `registry`.
    pub(crate) repository_tag: String,
    /// The registry to pull it from, if that is not this server.
    pub(crate) registry: Option<String>,
    /// The path of the file at this server (`/files/…`), if the item is a file.
    pub(crate) link: Option<String>,
    /// The paths of other files: the sidecars of a file, or the files of a set of packages or of a
    /// provider. If there are many, only the first ones.
    pub(crate) other_links: Vec<String>,
    /// The number of other files that are not in `other_links`.
    pub(crate) unlisted_files: usize,
    /// The original URLs of the file.
    pub(crate) urls: Vec<String>,
    pub(crate) digest: Digest,
    /// In bytes; unknown for pushed manifests.
    pub(crate) size: Option<u64>,
    /// The number of packages in a set of packages.
    pub(crate) packages: usize,
    pub(crate) platforms: BTreeSet<String>,
    pub(crate) attached: Vec<AttachedManifest>,
    /// The `metadata.name` of the YAML manifests that were locked, if all have the same one.
    pub(crate) requested_by: Option<String>,
    /// Whether the bundle lacks a part of the item.
    pub(crate) incomplete: bool,
}

/// A manifest that refers to an image: a signature, an attestation or an SBOM.
#[derive(Debug, Clone)]
pub(crate) struct AttachedManifest {
    pub(crate) descriptor: Descriptor,
    /// The tag that cosign's naming convention gives it (`sha256-….sig`).
    pub(crate) tag: Option<String>,
}

impl ItemListing {
    /// A listing with only these properties, as for a pushed tag.
    pub(crate) fn new(
        kind: EntryKind,
        name: String,
        repository_tag: String,
        digest: Digest,
    ) -> ItemListing {
        ItemListing {
            kind,
            name,
            repository_tag,
            registry: None,
            link: None,
            other_links: Vec::new(),
            unlisted_files: 0,
            urls: Vec::new(),
            digest,
            size: None,
            packages: 0,
            platforms: BTreeSet::new(),
            attached: Vec::new(),
            requested_by: None,
            incomplete: false,
        }
    }

    /// Kind and number of packages, as `EntryCount` adds them up.
    pub(crate) fn kind_and_packages(&self) -> (EntryKind, usize) {
        (self.kind, self.packages)
    }
}
