//! The referrers of an entry that cannot be packed, because the store lacks a part of them.

use landfall_content::{BlobRead, ListedAttestations, LockEntry};
use landfall_model::{Digest, Manifest};
use std::collections::{BTreeMap, BTreeSet};

/// The manifests and blobs of referrers of `entry` that are left out if the store lacks those in
/// `absent`: the manifests that name one of them, and what only these manifests name.
/// `attestations` are those that the index of the entry lists.
pub(super) fn lost_referrers(
    entry: &LockEntry,
    attestations: &ListedAttestations,
    absent: BTreeSet<Digest>,
    blobs: &dyn BlobRead,
) -> BTreeSet<Digest> {
    let mut lost = absent;
    let mut named: BTreeMap<&Digest, BTreeSet<Digest>> = BTreeMap::new();
    let referrers = entry.referrers.iter().filter(|referrer| !referrer.is_child);
    let referrers = referrers.map(|referrer| &referrer.descriptor);
    let listed = entry.parts.iter().map(|part| &part.descriptor);
    let listed = listed.filter(|part| attestations.manifests().contains(&part.digest));
    for manifest in referrers.chain(listed) {
        let digest = &manifest.digest;
        if lost.contains(digest) {
            continue;
        }
        let manifest = blobs.read(manifest).ok();
        match manifest.and_then(|bytes| Manifest::parse(&bytes, None).ok()) {
            Some((manifest, _)) => {
                named.insert(digest, manifest.into_digests());
            }
            None => {
                lost.insert(digest.clone());
            }
        }
    }
    loop {
        let before = lost.len();
        for (digest, content) in &named {
            if !content.is_disjoint(&lost) {
                lost.insert((*digest).clone());
            }
        }
        if lost.len() == before {
            break;
        }
    }
    let kept = named.iter().filter(|(digest, _)| !lost.contains(digest));
    let kept: BTreeSet<&Digest> = kept.flat_map(|(_, content)| content).collect();
    let unneeded = entry.referrer_blobs.iter().chain(attestations.blobs());
    let unneeded: Vec<_> = unneeded.filter(|digest| !kept.contains(digest)).collect();
    lost.extend(unneeded.into_iter().cloned());
    lost
}
