//! Bases of a delta: what the receiver of an earlier bundle has, and what a delta may leave out.

use crate::format::base::BaseName;
use crate::format::contents::Contents;
use landfall_content::{BlobRead, ContentError, LockEntry, PartOrigin};
use landfall_item::lockfile::Lock;
use landfall_model::{Descriptor, Digest, Manifest, media_type};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Something that was carried before: its name, and the content that its receiver has.
#[derive(Debug)]
pub struct DeltaBase {
    name: BaseName,
    /// Digest and size of that content; the size where the base knows it.
    had: HashMap<Digest, Option<u64>>,
}

impl DeltaBase {
    /// A bundle with this digest and index: its receiver has what is in it, and what it leaves out
    /// itself.
    pub fn bundle(digest: Digest, contents: &Contents) -> DeltaBase {
        let inside = contents
            .entries
            .iter()
            .map(|entry| (entry.digest.clone(), Some(entry.size)));
        let outside = contents
            .omitted
            .iter()
            .map(|blob| (blob.digest.clone(), Some(blob.size)));
        let lock = contents.locks[0].fingerprint.clone();
        DeltaBase {
            name: BaseName::Bundle { digest, lock },
            had: inside.chain(outside).collect(),
        }
    }

    /// A lock: its receiver has all that it names.
    pub fn lock(lock: &Lock) -> DeltaBase {
        let parts = lock.entries().into_iter().flat_map(|entry| entry.parts);
        let had = parts
            .map(|part| (part.descriptor.digest, Some(part.descriptor.size)))
            .collect();
        DeltaBase {
            name: BaseName::Lock {
                lock: lock.fingerprint(),
            },
            had,
        }
    }

    /// A push: `registry` has these blobs of `lock`, each in a repository.
    pub fn receipt(
        lock: Digest,
        registry: String,
        repositories: BTreeMap<Digest, String>,
    ) -> DeltaBase {
        let had = repositories
            .keys()
            .map(|digest| (digest.clone(), None))
            .collect();
        DeltaBase {
            name: BaseName::Receipt {
                lock,
                registry,
                repositories,
            },
            had,
        }
    }

    fn has(&self, blob: &Descriptor) -> bool {
        self.had
            .get(&blob.digest)
            .is_some_and(|size| size.is_none_or(|size| size == blob.size))
    }

    /// The name that it has in a bundle which leaves out `omitted`.
    fn named(&self, omitted: &[Descriptor]) -> BaseName {
        let mut name = self.name.clone();
        if let BaseName::Receipt { repositories, .. } = &mut name {
            let omitted: HashSet<&Digest> = omitted.iter().map(|blob| &blob.digest).collect();
            repositories.retain(|digest, _| omitted.contains(digest));
        }
        name
    }
}

/// Whether there are bases and all of them have the blob.
pub(crate) fn all_have(bases: &[DeltaBase], blob: &Descriptor) -> bool {
    !bases.is_empty() && bases.iter().all(|base| base.has(blob))
}

/// The names of the bases, each once, sorted: their order has no meaning.
pub(crate) fn names(bases: &[DeltaBase], omitted: &[Descriptor]) -> Vec<BaseName> {
    let mut names: Vec<BaseName> = bases.iter().map(|base| base.named(omitted)).collect();
    names.sort();
    names.dedup();
    names
}

/// The digests of an entry that are in every delta: all but layers and the contents of files. Where
/// `blobs` lacks a manifest, its layers are not known as layers, so they are kept.
///
/// # Errors
/// When a manifest cannot be read.
pub(crate) fn kept(
    entry: &LockEntry,
    blobs: &dyn BlobRead,
) -> Result<HashSet<Digest>, ContentError> {
    let (mut kept, mut layers) = (HashSet::new(), HashSet::new());
    for part in &entry.parts {
        let Descriptor {
            digest,
            size,
            media_type: kind,
        } = &part.descriptor;
        if part.is_manifest() || !part.is_stored() {
            kept.insert(digest.clone());
        }
        match &part.origin {
            PartOrigin::Url(_) | PartOrigin::Urls(_) => {
                layers.insert(digest.clone());
            }
            PartOrigin::Manifest { .. }
                if !media_type::is_index(kind) && blobs.stat(digest)? == Some(*size) =>
            {
                if let Ok((
                    Manifest::Image {
                        config,
                        layers: own,
                        ..
                    },
                    _,
                )) = Manifest::parse(&blobs.read(&part.descriptor)?, None)
                {
                    kept.insert(config.digest);
                    layers.extend(own.into_iter().map(|layer| layer.digest));
                }
            }
            _ => {}
        }
    }
    let others = entry.parts.iter().map(|part| &part.descriptor.digest);
    kept.extend(others.filter(|digest| !layers.contains(digest)).cloned());
    Ok(kept)
}
