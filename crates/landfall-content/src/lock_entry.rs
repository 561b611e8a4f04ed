//! The entries of a lock as transfers need them: their parts, and what one shard has of them.

use crate::{EntryPart, PartOrigin};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{Descriptor, Digest, Manifest, media_type};
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

/// The parts of a lock entry that belong to this shard.
pub struct ShardEntry {
    /// The entry, reduced to these parts.
    pub entry: LockEntry,
    /// How many parts the whole entry has.
    pub part_count: usize,
}

impl ShardEntry {
    /// Reduces `entry` to the parts that `is_own` accepts; `None` if it accepts none.
    pub fn filter(mut entry: LockEntry, is_own: impl Fn(&EntryPart) -> bool) -> Option<ShardEntry> {
        let part_count = entry.parts.len();
        entry.parts.retain(is_own);
        if entry.parts.is_empty() {
            return None;
        }
        Some(ShardEntry { entry, part_count })
    }

    /// Wraps an entry that belongs to this shard as a whole.
    pub fn whole(entry: LockEntry) -> ShardEntry {
        ShardEntry {
            part_count: entry.parts.len(),
            entry,
        }
    }

    /// Whether this shard has every part of the entry.
    pub fn is_whole(&self) -> bool {
        self.entry.parts.len() == self.part_count
    }

    /// Returns the report item for these parts, with status `present`. If other shards have the
    /// rest, the reason says so.
    pub fn item(&self) -> ReportItem {
        let mut item = self.entry.item();
        if !self.is_whole() {
            item.reason = Some(format!(
                "{} of its {} parts; other shards have the rest",
                self.entry.parts.len(),
                self.part_count
            ));
        }
        item
    }
}

// The attestations that the index of an entry lists, as BuildKit writes them. Nodes run the image
// without them.

/// The attestations that the index of an entry lists, with the blobs that only they name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedAttestations {
    manifests: BTreeSet<Digest>,
    blobs: BTreeSet<Digest>,
    /// The other manifests and their blobs; `None` if any content may be needed.
    needed: Option<BTreeSet<Digest>>,
}

impl ListedAttestations {
    /// The attestations of `entry`, which must have all its parts. `read` returns a manifest, or
    /// `None` if it cannot be read. If one that is not an attestation cannot be read, any content
    /// may belong to it, so the result is empty.
    pub fn of(
        entry: &LockEntry,
        read: impl Fn(&Descriptor) -> Option<Vec<u8>>,
    ) -> ListedAttestations {
        let parsed = |descriptor: &Descriptor| {
            let (manifest, _) = Manifest::parse(&read(descriptor)?, None).ok()?;
            Some(manifest)
        };
        let Some(Manifest::Index(children)) = parsed(&entry.top) else {
            return ListedAttestations::default();
        };
        let (attestations, others): (Vec<_>, Vec<_>) =
            children.iter().partition(|child| child.attests.is_some());
        let mut manifests: BTreeSet<Digest> = attestations
            .into_iter()
            .map(|child| child.descriptor.digest.clone())
            .collect();
        for other in others {
            manifests.remove(&other.descriptor.digest);
        }
        let mut blobs = BTreeSet::new();
        let mut needed = BTreeSet::new();
        let own = entry.parts.iter().filter(|part| {
            part.is_manifest()
                && !matches!(part.origin, PartOrigin::Trimmed { .. })
                && !entry.only_refers(&part.descriptor.digest)
        });
        for part in own {
            let is_attestation = manifests.contains(&part.descriptor.digest);
            match parsed(&part.descriptor) {
                Some(manifest) if is_attestation => blobs.extend(manifest.into_digests()),
                Some(manifest) => {
                    needed.insert(part.descriptor.digest.clone());
                    needed.extend(manifest.into_digests().difference(&manifests).cloned());
                }
                None if is_attestation => {}
                None => return ListedAttestations::default(),
            }
        }
        blobs.retain(|digest| !needed.contains(digest));
        ListedAttestations {
            manifests,
            blobs,
            needed: Some(needed),
        }
    }

    /// Whether only attestations need the manifest or blob with this digest.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.manifests.contains(digest) || self.blobs.contains(digest)
    }

    /// Whether the image needs the manifest or blob with this digest. The blobs of an attestation
    /// that cannot be read are not needed.
    pub fn is_needed(&self, digest: &Digest) -> bool {
        self.needed
            .as_ref()
            .is_none_or(|needed| needed.contains(digest))
    }

    /// The manifests of the attestations.
    pub fn manifests(&self) -> &BTreeSet<Digest> {
        &self.manifests
    }

    /// The blobs that only attestations name.
    pub fn blobs(&self) -> &BTreeSet<Digest> {
        &self.blobs
    }
}
