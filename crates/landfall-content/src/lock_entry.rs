//! A lock entry split into parts: every blob and manifest that it needs.

use super::{EntryPart, PartOrigin};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{Descriptor, Digest, media_type};
use std::collections::BTreeSet;

/// A lock entry split into parts: every blob and manifest that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockEntry {
    /// The kind of the entry: image, file, chart and so on.
    pub kind: EntryKind,
    /// The name in the lock.
    pub name: String,
    /// The digest in the lock.
    pub digest: Digest,
    /// The annotation `org.opencontainers.image.ref.name` in the `index.json` of a layout.
    pub layout_name: String,
    /// The manifest that `index.json` lists.
    pub top: Descriptor,
    /// The `artifactType` in `index.json`, if the manifest has one.
    pub artifact_type: Option<&'static str>,
    /// All parts in dependency order: blobs, then manifests, children before parents, and `top`
    /// last. A trimmed index comes before `top`.
    pub parts: Vec<EntryPart>,
    /// Manifests that refer to this entry, such as signatures, children before parents. A push
    /// delivers them before the tag. These manifests and their blobs are among the parts.
    pub referrers: Vec<AttachedReferrer>,
    /// The digests of the blobs that only referrers name. They are among the parts.
    pub referrer_blobs: BTreeSet<Digest>,
}

/// A manifest of a [`LockEntry`] that refers to another manifest of the same entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedReferrer {
    /// Digest, size and media type.
    pub descriptor: Descriptor,
    /// The tag at every destination, if cosign's tag convention gives it one.
    pub tag: Option<String>,
    /// The `subject` that the manifest names.
    pub subject: Option<Digest>,
    /// Whether the index of the entry lists it as well, as with BuildKit's attestations.
    pub is_child: bool,
}

impl LockEntry {
    /// Whether the manifest with this digest belongs to the entry only as a referrer, not as a
    /// child of its index.
    pub fn only_refers(&self, digest: &Digest) -> bool {
        self.referrers
            .iter()
            .any(|one| one.descriptor.digest == *digest && !one.is_child)
    }

    /// Whether only referrers need the manifest or blob with this digest, so that the entry is
    /// usable without it.
    pub fn is_of_referrers(&self, digest: &Digest) -> bool {
        self.referrer_blobs.contains(digest) || self.only_refers(digest)
    }

    /// Returns the trimmed index, if the entry has one.
    pub fn trimmed(&self) -> Option<&EntryPart> {
        self.parts
            .iter()
            .find(|part| matches!(part.origin, PartOrigin::Trimmed { .. }))
    }

    /// Returns the report item for the entry, with status `present`.
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

    /// Returns how many different packages a set of packages has; 0 for other kinds.
    pub fn package_count(&self) -> usize {
        if self.kind != EntryKind::Package {
            return 0;
        }
        self.parts
            .iter()
            .map(|part| &part.descriptor)
            .filter(|blob| matches!(&*blob.media_type, media_type::DEB | media_type::RPM))
            .map(|blob| &blob.digest)
            // a package may be listed by several repositories with the same digest
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// Returns the size of all parts in bytes, counting each digest once.
    pub fn size(&self) -> u64 {
        let unique: std::collections::BTreeMap<_, _> = self
            .parts
            .iter()
            .map(|part| (&part.descriptor.digest, part.descriptor.size))
            .collect();
        landfall_model::sum_sizes(unique.into_values())
    }
}
