//! The referrers of an entry that cannot be packed, because the store lacks a part of them.

use landfall_content::{BlobRead, LockEntry};
use landfall_model::{Digest, Manifest};
use std::collections::{BTreeMap, BTreeSet};

/// The manifests and blobs of referrers of `entry` that are left out if the store lacks those in
/// `absent`: the manifests that name one of them, and what only these manifests name.
pub(super) fn lost_referrers(
    entry: &LockEntry,
    absent: BTreeSet<Digest>,
    blobs: &dyn BlobRead,
) -> BTreeSet<Digest> {
    let mut lost = absent;
    let mut named: BTreeMap<&Digest, BTreeSet<Digest>> = BTreeMap::new();
    for referrer in entry.referrers.iter().filter(|referrer| !referrer.is_child) {
        let digest = &referrer.descriptor.digest;
        if lost.contains(digest) {
            continue;
        }
        let manifest = blobs.read(&referrer.descriptor).ok();
        match manifest.and_then(|bytes| Manifest::parse(&bytes, None).ok()) {
            Some((manifest, _)) => {
                named.insert(digest, content_of(manifest));
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
    let unneeded = entry.referrer_blobs.iter();
    let unneeded: Vec<_> = unneeded.filter(|digest| !kept.contains(digest)).collect();
    lost.extend(unneeded.into_iter().cloned());
    lost
}

/// The digests that a manifest names.
fn content_of(manifest: Manifest) -> BTreeSet<Digest> {
    let descriptors: Vec<_> = match manifest {
        Manifest::Index(children) => children.into_iter().map(|child| child.descriptor).collect(),
        Manifest::Image { config, layers, .. } => config.into_iter().chain(layers).collect(),
    };
    descriptors
        .into_iter()
        .map(|content| content.digest)
        .collect()
}
