//! The attestations that the index of an entry lists, as BuildKit writes them. Nodes run the image
//! without them.

use super::{LockEntry, PartOrigin};
use landfall_model::{Descriptor, Digest, Manifest};
use std::collections::BTreeSet;

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
