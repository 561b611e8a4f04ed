//! Deltas: bundles that leave out what every base has. What a base has, and what may be left out.

use super::contents::Contents;
use super::{Bundle, DELTA, Plan};
use crate::content::{BlobRead, ContentError};
use crate::content::{Entry, Origin};
use crate::item;
use crate::lockfile::Lock;
use crate::model::is_repository;
use crate::model::{Descriptor, Digest, Manifest, media_type};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// A base, as the contents index of a delta names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum BaseName {
    /// A bundle, perhaps a delta itself.
    Bundle {
        /// Its bundle digest.
        digest: Digest,
        /// Fingerprint of its lock.
        lock: Digest,
    },
    /// A lock: whoever has all that it names.
    Lock {
        /// Its fingerprint.
        lock: Digest,
    },
    /// What a push left at a registry.
    Receipt {
        /// Fingerprint of the lock that was pushed.
        lock: Digest,
        /// The registry, `host[:port]`.
        registry: String,
        /// A repository of the registry for each blob that is left out.
        repositories: BTreeMap<Digest, String>,
    },
}

impl BaseName {
    /// Whether `bundle` is this base, or one that was packed from its lock.
    pub fn is(&self, bundle: &Bundle) -> bool {
        match self {
            BaseName::Bundle { digest, .. } => digest == bundle.digest(),
            BaseName::Lock { lock } | BaseName::Receipt { lock, .. } => lock == bundle.fingerprint(),
        }
    }
}

impl fmt::Display for BaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaseName::Bundle { digest, lock } => write!(f, "bundle {digest} (lock {lock})"),
            BaseName::Lock { lock } => write!(f, "a bundle of lock {lock}"),
            BaseName::Receipt { lock, registry, .. } => write!(f, "what {registry} has of lock {lock}"),
        }
    }
}

/// Something that was carried before: what it is called, and which content its receiver has.
#[derive(Debug)]
pub struct Base {
    name: BaseName,
    /// Sizes in bytes, where the base tells them.
    had: HashMap<Digest, Option<u64>>,
}

impl Base {
    /// What whoever can use `bundle` has: what is in it, and what it leaves out itself.
    pub fn bundle(bundle: &Bundle) -> Base {
        let contents = bundle.contents();
        let inside = contents.entries.iter().map(|entry| (entry.digest.clone(), Some(entry.size)));
        let outside = contents.omitted.iter().map(|blob| (blob.digest.clone(), Some(blob.size)));
        let (digest, lock) = (bundle.digest().clone(), bundle.fingerprint().clone());
        Base { name: BaseName::Bundle { digest, lock }, had: inside.chain(outside).collect() }
    }

    /// What whoever has all of `lock` has.
    pub fn lock(lock: &Lock) -> Base {
        let parts = item::entries(lock).into_iter().flat_map(|entry| entry.parts);
        let had = parts.map(|part| (part.descriptor.digest, Some(part.descriptor.size))).collect();
        Base { name: BaseName::Lock { lock: lock.fingerprint() }, had }
    }

    /// What `registry` has since `lock` was pushed: a repository for each blob.
    pub fn receipt(lock: Digest, registry: String, repositories: BTreeMap<Digest, String>) -> Base {
        let had = repositories.keys().map(|digest| (digest.clone(), None)).collect();
        Base { name: BaseName::Receipt { lock, registry, repositories }, had }
    }

    fn has(&self, blob: &Descriptor) -> bool {
        self.had.get(&blob.digest).is_some_and(|size| size.is_none_or(|size| size == blob.size))
    }

    /// How a bundle names it that leaves out `omitted`.
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
pub(super) fn all_have(bases: &[Base], blob: &Descriptor) -> bool {
    !bases.is_empty() && bases.iter().all(|base| base.has(blob))
}

/// The bases' names, each once: their order says nothing.
pub(super) fn names(bases: &[Base], omitted: &[Descriptor]) -> Vec<BaseName> {
    let mut names: Vec<BaseName> = bases.iter().map(|base| base.named(omitted)).collect();
    names.sort();
    names.dedup();
    names
}

/// The digests of an entry that stand in every delta: all but layers and the contents of files. A manifest that
/// `blobs` has not says nothing of its layers, so these are kept.
///
/// # Errors
/// When a manifest cannot be read.
pub(super) fn kept(entry: &Entry, blobs: &dyn BlobRead) -> Result<HashSet<Digest>, ContentError> {
    let (mut kept, mut layers) = (HashSet::new(), HashSet::new());
    for part in &entry.parts {
        let Descriptor { digest, size, media_type: kind } = &part.descriptor;
        if part.is_manifest() || !part.is_stored() {
            kept.insert(digest.clone());
        }
        match &part.origin {
            Origin::Url(_) => {
                layers.insert(digest.clone());
            }
            Origin::Manifest { .. } if !media_type::is_index(kind) && blobs.stat(digest)? == Some(*size) => {
                if let Ok((Manifest::Image { config, layers: own, .. }, _)) =
                    Manifest::parse(&blobs.read(&part.descriptor)?, None)
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

/// Checks what an index says of its bases.
pub(super) fn check(contents: &Contents) -> Result<(), String> {
    let Contents { requires, bases, omitted, entries, .. } = contents;
    if requires.iter().any(|word| word == DELTA) == omitted.is_empty()
        || bases.is_empty() != omitted.is_empty()
    {
        return Err("what it says of its bases does not fit together".into());
    }
    if !omitted.is_sorted_by(|a, b| a.digest < b.digest) {
        return Err("what it leaves out is not sorted, or is there twice".into());
    }
    let inside: HashSet<&Digest> = match omitted.is_empty() {
        true => HashSet::new(),
        false => entries.iter().map(|entry| &entry.digest).collect(),
    };
    if let Some(both) = omitted.iter().find(|blob| inside.contains(&blob.digest)) {
        return Err(format!("it leaves out {} and has it", both.digest));
    }
    let named = bases.iter().filter_map(|base| match base {
        BaseName::Receipt { repositories, .. } => Some(repositories.values()),
        BaseName::Bundle { .. } | BaseName::Lock { .. } => None,
    });
    match named.flatten().find(|repository| !is_repository(repository)) {
        Some(bad) => Err(format!("'{bad}' is no repository")),
        None => Ok(()),
    }
}

/// What is wrong with what `bundle` leaves out of `plan`, the plan of the whole of `lock`.
pub(super) fn faults(bundle: &Bundle, lock: &Lock, plan: &Plan) -> Vec<String> {
    if bundle.omitted().is_empty() {
        return Vec::new();
    }
    let asked: HashMap<&Digest, &Descriptor> =
        plan.pieces.iter().map(|piece| (&piece.descriptor.digest, &piece.descriptor)).collect();
    let (mut all_kept, mut faults) = (HashSet::new(), Vec::new());
    let is_held =
        |entry: &Entry| plan.items.iter().any(|item| (item.kind, &item.name) == (entry.kind, &entry.name));
    for entry in item::each(lock).filter(is_held) {
        match kept(&entry, bundle) {
            Ok(kept) => all_kept.extend(kept),
            Err(error) => faults.push(error.to_string()),
        }
    }
    for blob in bundle.omitted() {
        if asked.get(&blob.digest) != Some(&blob) {
            faults.push(format!("it leaves out {}, and the lock does not ask for this", blob.digest));
        } else if all_kept.contains(&blob.digest) {
            faults.push(format!("it leaves out {}, and only layers and files may be left out", blob.digest));
        }
    }
    faults
}
