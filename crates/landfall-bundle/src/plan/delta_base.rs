//! Bases of a delta: the content that the receiver already has, and the content that a delta may
//! omit.

use crate::format::contents::ContentsIndex;
use crate::format::names::BaseName;
use landfall_content::{BlobRead, ContentError, LocalContent, LocalForm, LockEntry, PartOrigin};
use landfall_item::lockfile::Lock;
use landfall_model::{Descriptor, Digest, Manifest};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A base of a delta: its identity, and the content that its receiver has.
#[derive(Debug)]
pub struct DeltaBase {
    name: BaseName,
    /// The blobs that the receiver has, with their sizes if the base records them.
    had: HashMap<Digest, Option<u64>>,
}

impl DeltaBase {
    /// The base for the bundle with this digest and index. Its receiver has the blobs in the
    /// bundle, and those that the bundle omits, references or has recipes for.
    pub fn bundle(digest: Digest, contents: &ContentsIndex) -> DeltaBase {
        let inside = contents
            .entries
            .iter()
            .map(|entry| (entry.digest.clone(), Some(entry.size)));
        let rebuilt = contents.recipes.iter().map(|recipe| &recipe.blob);
        let outside = contents
            .omitted
            .iter()
            .chain(contents.references.iter().map(|one| &one.blob))
            .chain(rebuilt)
            .map(|blob| (blob.digest.clone(), Some(blob.size)));
        let lock = contents.locks[0].fingerprint.clone();
        DeltaBase {
            name: BaseName::Bundle { digest, lock },
            had: inside.chain(outside).collect(),
        }
    }

    /// The base for a lock. Its receiver has all content that the lock names.
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

    /// The base for the receipt of a push. `repositories` lists the blobs of `lock` that `registry`
    /// has, by digest, each with its repository.
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

    /// Whether the receiver has this blob.
    pub fn has(&self, blob: &Descriptor) -> bool {
        self.had
            .get(&blob.digest)
            // a receipt records no sizes; its blobs were verified when they were pushed
            .is_some_and(|size| size.is_none_or(|size| size == blob.size))
    }

    /// The identity of the base as recorded in a bundle that omits `omitted`.
    pub fn named(&self, omitted: &[Descriptor]) -> BaseName {
        let mut name = self.name.clone();
        if let BaseName::Receipt { repositories, .. } = &mut name {
            // a push mounts only omitted blobs from these repositories
            let omitted: HashSet<&Digest> = omitted.iter().map(|blob| &blob.digest).collect();
            repositories.retain(|digest, _| omitted.contains(digest));
        }
        name
    }
}

/// Whether the blob is in every base, and there is at least one.
pub(crate) fn all_have(bases: &[DeltaBase], blob: &Descriptor) -> bool {
    !bases.is_empty() && bases.iter().all(|base| base.has(blob))
}

/// The identities of the bases, sorted and without duplicates, so that their order on the command
/// line does not affect the bytes of the bundle.
pub(crate) fn names(bases: &[DeltaBase], omitted: &[Descriptor]) -> Vec<BaseName> {
    let mut names: Vec<BaseName> = bases.iter().map(|base| base.named(omitted)).collect();
    names.sort();
    names.dedup();
    names
}

/// The blobs of `entry` that no delta omits: all except layers, files, and the packs and large
/// files of git repositories. If `blobs` lacks a manifest, its layers cannot be recognized, so they
/// are kept.
pub(crate) fn kept(
    entry: &LockEntry,
    blobs: &dyn BlobRead,
) -> Result<HashSet<Digest>, ContentError> {
    let mut kept = HashSet::new();
    let mut layers = HashSet::new();
    for part in &entry.parts {
        let Descriptor { digest, size, .. } = &part.descriptor;
        // a push needs all manifests of an item, even if the receiver has its layers
        if part.is_manifest() || !part.is_stored() {
            kept.insert(digest.clone());
        }
        match &part.origin {
            PartOrigin::Url(_)
            | PartOrigin::Urls(_)
            | PartOrigin::Git { .. }
            | PartOrigin::LargeFile(_)
            | PartOrigin::Local(LocalContent {
                form: LocalForm::File | LocalForm::Folder(_),
                ..
            }) => {
                layers.insert(digest.clone());
            }
            PartOrigin::Manifest { .. } | PartOrigin::Local(_)
                if part.is_manifest() && blobs.stat(digest)? == Some(*size) =>
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
                    kept.extend(config.map(|config| config.digest));
                    layers.extend(own.into_iter().map(|layer| layer.digest));
                }
            }
            _ => {}
        }
    }
    let others = entry.parts.iter().map(|part| &part.descriptor.digest);
    // content is kept unless it is certainly a layer or a file
    kept.extend(others.filter(|digest| !layers.contains(digest)).cloned());
    Ok(kept)
}
