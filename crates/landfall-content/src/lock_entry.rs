//! A lock entry taken apart: everything that must be there for it to be whole.

use super::{EntryPart, PartOrigin};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{Descriptor, Digest, media_type};

/// A lock entry taken apart: everything that must be there for it to be whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockEntry {
    /// What kind.
    pub kind: EntryKind,
    /// Its name in the lock.
    pub name: String,
    /// The digest that the lock gives it.
    pub digest: Digest,
    /// What `org.opencontainers.image.ref.name` says in a layout's `index.json`.
    pub layout_name: String,
    /// The manifest that stands in a layout's `index.json`.
    pub top: Descriptor,
    /// What `artifactType` says there, where it says something.
    pub artifact_type: Option<&'static str>,
    /// All its parts in dependency order: blobs, then manifests, children before parents, the top
    /// last. The trimmed index, where there is one, comes before the top.
    pub parts: Vec<EntryPart>,
    /// What refers to it and must stand at a destination before its tag does: children before
    /// parents. Their manifests and blobs are among the parts.
    pub referrers: Vec<AttachedReferrer>,
}

/// A manifest of an [`LockEntry`] that refers to another manifest of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedReferrer {
    /// What it is.
    pub descriptor: Descriptor,
    /// Its tag at every destination, where cosign's convention gives it one.
    pub tag: Option<String>,
    /// The manifest that it says it refers to.
    pub subject: Option<Digest>,
    /// Whether it stands under the entry's own index too, as BuildKit's attestations do.
    pub is_child: bool,
}

impl LockEntry {
    /// Whether the manifest with this digest is part of the entry because it refers to it, and not
    /// by its index.
    pub fn only_refers(&self, digest: &Digest) -> bool {
        self.referrers
            .iter()
            .any(|one| one.descriptor.digest == *digest && !one.is_child)
    }

    /// The trimmed index, where it has one.
    pub fn trimmed(&self) -> Option<&EntryPart> {
        self.parts
            .iter()
            .find(|part| matches!(part.origin, PartOrigin::Trimmed { .. }))
    }

    /// It as an item of a report, that is there.
    pub fn item(&self) -> ReportItem {
        ReportItem {
            kind: self.kind,
            name: self.name.clone(),
            digest: Some(self.digest.clone()),
            bytes: Some(self.size()),
            packages: self.package_count(),
            status: ItemStatus::Present,
            reason: None,
        }
    }

    /// The number of packages in a set of packages, each digest once; 0 for every other entry.
    pub fn package_count(&self) -> usize {
        let is_package = |part: &&EntryPart| {
            let media_type = &*part.descriptor.media_type;
            self.kind == EntryKind::Package
                && matches!(media_type, media_type::DEB | media_type::RPM)
        };
        let packages = self
            .parts
            .iter()
            .filter(is_package)
            .map(|part| &part.descriptor.digest);
        packages.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Size in bytes of all parts, each digest once.
    pub fn size(&self) -> u64 {
        let unique: std::collections::BTreeMap<_, _> = self
            .parts
            .iter()
            .map(|part| (&part.descriptor.digest, part.descriptor.size))
            .collect();
        unique.values().sum()
    }
}
