//! Fetches, level by level, the manifests below an index; reads local manifests; lists blobs.

use crate::resolver::{ResolveError, Resolver};
use landfall_content::{BlobRead, ContentError};
use landfall_model::{
    ChildManifest, Descriptor, Digest, ImageRef, Limits, Manifest, ManifestError, UnreadableChild,
    human_size, locked, media_type, read_referrer, unreadable_children,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// A fetched and parsed manifest of an image or referrer.
pub(super) struct ImageManifest {
    pub(super) descriptor: Descriptor,
    pub(super) manifest: Manifest,
    /// The manifest that this manifest refers to, if it is a referrer.
    pub(super) subject: Option<Digest>,
}

/// Why a manifest, a config, a signature or a checksum file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReadError {
    message: String,
    /// Whether the content is missing.
    pub is_missing: bool,
}

impl From<ContentError> for ReadError {
    fn from(error: ContentError) -> ReadError {
        ReadError {
            message: error.to_string(),
            is_missing: matches!(error, ContentError::Missing { .. }),
        }
    }
}

impl From<String> for ReadError {
    fn from(message: String) -> ReadError {
        ReadError {
            message,
            is_missing: false,
        }
    }
}

/// The error for content whose size in the lock is larger than it may be.
pub(crate) fn too_large(digest: &Digest) -> ReadError {
    format!("{digest} is larger than any manifest").into()
}

/// Reads a manifest, config or signature into memory. The size in the lock is untrusted, so it is
/// bounded before the content is read.
pub(super) fn read_small(
    blobs: &dyn BlobRead,
    descriptor: &Descriptor,
) -> Result<Vec<u8>, ReadError> {
    if descriptor.size > Limits::default().manifest_bytes as u64 {
        return Err(too_large(&descriptor.digest));
    }
    Ok(blobs.read(descriptor)?)
}

/// Reads and parses a manifest. Returns its bytes and its media type as well.
pub(crate) fn read_manifest(
    blobs: &dyn BlobRead,
    descriptor: &Descriptor,
) -> Result<(Vec<u8>, Manifest, String), ReadError> {
    let bytes = read_small(blobs, descriptor)?;
    let (manifest, media_type) = Manifest::parse(&bytes, Some(&descriptor.media_type))
        .map_err(|error| format!("{}: {error}", descriptor.digest))?;
    Ok((bytes, manifest, media_type))
}

/// Whether a child of an index is a manifest by its media type. An index may list blobs as well. A
/// child of an unknown media type is a manifest if the registry has it as one; the lock then lists
/// it as a manifest, see [`ListedManifests::has`](super::locked::ListedManifests::has).
pub(super) fn is_manifest(child: &ChildManifest) -> bool {
    media_type::is_manifest(&child.descriptor.media_type)
}

/// How many bytes of manifests may still be fetched for one image, or for its referrers. A hostile
/// index could name any number of manifests of any size, and all of them are kept in memory.
pub(super) struct ManifestBudget(Mutex<u64>);

impl ManifestBudget {
    /// Returns the full budget, [`Limits::image_manifest_bytes`].
    pub(super) fn new(limits: &Limits) -> ManifestBudget {
        ManifestBudget(Mutex::new(limits.image_manifest_bytes))
    }

    /// Subtracts the sizes of manifests. Callers that know the sizes call it before they fetch the
    /// manifests, other callers afterwards. Fails if less than the sum of the sizes is left.
    pub(super) fn spend(
        &self,
        limits: &Limits,
        mut sizes: impl Iterator<Item = u64>,
    ) -> Result<(), String> {
        let mut left = locked(&self.0);
        match sizes.try_fold(*left, u64::checked_sub) {
            Some(rest) => {
                *left = rest;
                Ok(())
            }
            None => {
                let limit = human_size(limits.image_manifest_bytes);
                Err(format!("its manifests are larger than {limit} together"))
            }
        }
    }
}

/// Fetches the manifests among the `kept` children and every manifest below them, level by level.
/// Manifests that are `known` are skipped, with everything below them. Attestations among the
/// `kept` children that upstream does not have are not in the result, and neither are children of
/// an unknown media type that upstream does not have as manifests: they are blobs.
pub(super) async fn fetch_below(
    resolver: &Resolver,
    name: &ImageRef,
    kept: &[&ChildManifest],
    known: &BTreeSet<Digest>,
    budget: &ManifestBudget,
) -> Result<BTreeMap<Digest, ImageManifest>, ResolveError> {
    let limits = resolver.limits();
    let mut all: BTreeMap<Digest, ImageManifest> = BTreeMap::new();
    let is_requested = |child: &ChildManifest| {
        let Descriptor {
            size, media_type, ..
        } = &child.descriptor;
        let is_small = *size <= limits.manifest_bytes as u64;
        is_manifest(child) || (media_type::may_be_unknown_manifest(media_type) && is_small)
    };
    let mut level: Vec<Descriptor> = kept
        .iter()
        .filter(|child| is_requested(child))
        .map(|child| child.descriptor.clone())
        .collect();
    for depth in 0..=limits.index_depth {
        // several indexes may list the same manifest
        level.retain(|descriptor| {
            !all.contains_key(&descriptor.digest) && !known.contains(&descriptor.digest)
        });
        level.sort();
        level.dedup_by(|a, b| a.digest == b.digest);
        if level.is_empty() {
            return Ok(all);
        }
        if depth == limits.index_depth {
            break;
        }
        if all.len() + level.len() > limits.index_nodes {
            return Err(format!(
                "its index has more than {} manifests below it",
                limits.index_nodes
            )
            .into());
        }
        // a blob of an unknown media type must not fail the image
        level.retain(|descriptor| {
            media_type::is_manifest(&descriptor.media_type)
                || budget
                    .spend(limits, std::iter::once(descriptor.size))
                    .is_ok()
        });
        let manifests = level
            .iter()
            .filter(|descriptor| media_type::is_manifest(&descriptor.media_type));
        budget.spend(limits, manifests.map(|descriptor| descriptor.size))?;
        let is_attestation = |digest: &Digest| {
            let mut own = kept
                .iter()
                .filter(|child| child.descriptor.digest == *digest);
            depth == 0 && own.all(|child| child.attests.is_some())
        };
        let fetching = level.iter().map(async |descriptor| {
            if !media_type::is_manifest(&descriptor.media_type) {
                return fetch_unknown(resolver, name, descriptor).await;
            }
            match fetch_one(resolver, name, descriptor).await {
                Err(cause) if cause.is_gone && is_attestation(&descriptor.digest) => Ok(None),
                fetched => fetched.map(Some),
            }
        });
        let fetched = futures_util::future::try_join_all(fetching).await?;
        level = Vec::new();
        for one in fetched.into_iter().flatten() {
            if let Manifest::Index(children) = &one.manifest {
                level.extend(
                    children
                        .iter()
                        .filter(|child| is_requested(child))
                        .map(|child| child.descriptor.clone()),
                );
            }
            all.insert(one.descriptor.digest.clone(), one);
        }
    }
    Err(format!("its indexes are nested deeper than {}", limits.index_depth).into())
}

/// Fetches the child `descriptor` of an index, whose media type is unknown. `None` if the registry
/// has no such manifest, or it has not the members of one: it is a blob then.
async fn fetch_unknown(
    resolver: &Resolver,
    name: &ImageRef,
    descriptor: &Descriptor,
) -> Result<Option<ImageManifest>, ResolveError> {
    let reference = descriptor.digest.to_string();
    let raw = match resolver.manifest(name, &reference, Some(descriptor)).await {
        Err(cause) if cause.is_gone => return Ok(None),
        raw => raw?,
    };
    match Manifest::parse(&raw.bytes, Some(&descriptor.media_type)) {
        Ok(_) => fetch_one(resolver, name, descriptor).await.map(Some),
        Err(_) => Ok(None),
    }
}

/// Fetches the manifest of `descriptor`, which an index or a referrers list names.
pub(super) async fn fetch_one(
    resolver: &Resolver,
    name: &ImageRef,
    descriptor: &Descriptor,
) -> Result<ImageManifest, ResolveError> {
    let raw = resolver
        .manifest(name, &descriptor.digest.to_string(), Some(descriptor))
        .await?;
    // the size that the index names becomes part of the lock
    if raw.bytes.len() as u64 != descriptor.size {
        return Err(format!(
            "{} has {} bytes, but its index says {}",
            descriptor.digest,
            raw.bytes.len(),
            descriptor.size
        )
        .into());
    }
    let (manifest, media_type) = Manifest::parse(&raw.bytes, Some(&descriptor.media_type))
        .map_err(|error| format!("{}: {error}", descriptor.digest))?;
    if let Manifest::Index(_) = manifest {
        refuse_unreadable(&unreadable_children(&raw.bytes))
            .map_err(|error| format!("{}: {error}", descriptor.digest))?;
    }
    let subject = read_referrer(&raw.bytes, descriptor).map(|referring| referring.subject);
    Ok(ImageManifest {
        descriptor: Descriptor {
            media_type: media_type.into(),
            ..descriptor.clone()
        },
        manifest,
        subject,
    })
}

/// Adds the manifest `digest` to `ordered`, after those below it if it is an index. `find` returns
/// the manifests that are known. A manifest in `seen` is skipped.
pub(super) fn add_children_first<'m>(
    digest: &Digest,
    find: &dyn Fn(&Digest) -> Option<&'m ImageManifest>,
    seen: &mut BTreeSet<Digest>,
    ordered: &mut Vec<&'m ImageManifest>,
) {
    let Some(found) = find(digest).filter(|_| seen.insert(digest.clone())) else {
        return;
    };
    if let Manifest::Index(children) = &found.manifest {
        for child in children {
            add_children_first(&child.descriptor.digest, find, seen, ordered);
        }
    }
    ordered.push(found);
}

/// Fails if there are children that cannot be carried.
pub(super) fn refuse_unreadable(children: &[UnreadableChild]) -> Result<(), ManifestError> {
    children
        .first()
        .map_or(Ok(()), |child| Err(child.why.clone()))
}

/// The configs and layers of `manifests`, the children that an index among them lists directly and
/// that `is_manifest` rejects, and the blobs in `loose`: once each, sorted by digest.
pub(super) fn blobs_of<'a>(
    manifests: impl IntoIterator<Item = &'a Manifest>,
    is_manifest: impl Fn(&ChildManifest) -> bool,
    loose: &[&ChildManifest],
) -> Vec<Descriptor> {
    let mut blobs: BTreeMap<Digest, Descriptor> = BTreeMap::new();
    let mut add = |descriptor: &Descriptor| {
        blobs
            .entry(descriptor.digest.clone())
            .or_insert_with(|| descriptor.clone());
    };
    for manifest in manifests {
        match manifest {
            Manifest::Image { config, layers, .. } => {
                config.iter().for_each(&mut add);
                layers.iter().for_each(&mut add);
            }
            Manifest::Index(children) => {
                children
                    .iter()
                    .filter(|child| !is_manifest(child))
                    .for_each(|child| add(&child.descriptor));
            }
        }
    }
    loose.iter().for_each(|child| add(&child.descriptor));
    blobs.into_values().collect()
}
