//! Fetches the manifests of an image level by level, reads those that are at hand, and lists their
//! blobs.

use crate::resolver::{ResolveError, Resolver};
use landfall_content::{BlobRead, ContentError};
use landfall_model::{
    ChildManifest, Descriptor, Digest, ImageRef, Limits, Manifest, ManifestError, human_size,
    media_type, read_referrer,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// A fetched and parsed manifest.
pub(super) struct Fetched {
    pub(super) descriptor: Descriptor,
    pub(super) manifest: Manifest,
    /// What it refers to.
    pub(super) subject: Option<Digest>,
}

/// Why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there, damaged, or the system refused.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// It has more bytes than a manifest may have.
    #[error("{0} is larger than any manifest")]
    TooLarge(Digest),
    /// It is no manifest.
    #[error("{digest}: {source}")]
    Manifest {
        /// What was read.
        digest: Digest,
        /// What is wrong.
        source: ManifestError,
    },
}

/// The bytes of a manifest or a config, checked.
pub(super) fn read_small(
    blobs: &dyn BlobRead,
    descriptor: &Descriptor,
) -> Result<Vec<u8>, ReadError> {
    if descriptor.size > Limits::default().manifest_bytes as u64 {
        return Err(ReadError::TooLarge(descriptor.digest.clone()));
    }
    Ok(blobs.read(descriptor)?)
}

/// A manifest with its bytes and its media type, checked.
pub(crate) fn read_manifest(
    blobs: &dyn BlobRead,
    descriptor: &Descriptor,
) -> Result<(Vec<u8>, Manifest, String), ReadError> {
    let bytes = read_small(blobs, descriptor)?;
    let failed = |source| ReadError::Manifest {
        digest: descriptor.digest.clone(),
        source,
    };
    let (manifest, kind) = Manifest::parse(&bytes, Some(&descriptor.media_type)).map_err(failed)?;
    Ok((bytes, manifest, kind))
}

/// Whether a child of an index is a manifest, and no blob.
pub(super) fn is_manifest(child: &ChildManifest) -> bool {
    media_type::is_manifest(&child.descriptor.media_type)
}

/// How many bytes of manifests may still be read for one image.
pub(super) struct Budget(Mutex<u64>);

impl Budget {
    /// All that [`Limits::image_manifest_bytes`] allows.
    pub(super) fn new(limits: &Limits) -> Budget {
        Budget(Mutex::new(limits.image_manifest_bytes))
    }

    /// Takes these sizes from it, before they are read.
    ///
    /// # Errors
    /// Where that is more than is left.
    pub(super) fn spend(
        &self,
        limits: &Limits,
        mut sizes: impl Iterator<Item = u64>,
    ) -> Result<(), String> {
        let mut left = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match sizes.try_fold(*left, u64::checked_sub) {
            Some(rest) => {
                *left = rest;
                Ok(())
            }
            None => {
                let most = human_size(limits.image_manifest_bytes);
                Err(format!(
                    "its manifests have more than {most} together, which nothing honest has"
                ))
            }
        }
    }
}

/// Fetches every manifest below the `kept` children, level by level. It skips those that are
/// `known`, and all below these.
pub(super) async fn fetch_under(
    resolver: &Resolver,
    name: &ImageRef,
    kept: &[&ChildManifest],
    known: &BTreeSet<Digest>,
    budget: &Budget,
) -> Result<BTreeMap<Digest, Fetched>, ResolveError> {
    let limits = resolver.limits();
    let mut all: BTreeMap<Digest, Fetched> = BTreeMap::new();
    let mut level: Vec<Descriptor> = kept
        .iter()
        .filter(|child| is_manifest(child))
        .map(|child| child.descriptor.clone())
        .collect();
    for _ in 0..limits.index_depth {
        let is_new = |digest: &Digest| !all.contains_key(digest) && !known.contains(digest);
        level.retain(|descriptor| is_new(&descriptor.digest));
        level.sort();
        level.dedup_by(|a, b| a.digest == b.digest);
        if level.is_empty() {
            return Ok(all);
        }
        if all.len() + level.len() > limits.index_nodes {
            return Err(format!(
                "more than {} manifests stand under its index",
                limits.index_nodes
            )
            .into());
        }
        budget.spend(limits, level.iter().map(|descriptor| descriptor.size))?;
        let fetching = level
            .iter()
            .map(|descriptor| fetch_one(resolver, name, descriptor));
        let fetched = futures_util::future::try_join_all(fetching).await?;
        level = Vec::new();
        for one in fetched {
            if let Manifest::Index(children) = &one.manifest {
                level.extend(
                    children
                        .iter()
                        .filter(|child| is_manifest(child))
                        .map(|child| child.descriptor.clone()),
                );
            }
            all.insert(one.descriptor.digest.clone(), one);
        }
    }
    Err(format!("its indexes are nested deeper than {}", limits.index_depth).into())
}

pub(super) async fn fetch_one(
    resolver: &Resolver,
    name: &ImageRef,
    descriptor: &Descriptor,
) -> Result<Fetched, ResolveError> {
    let raw = resolver
        .manifest(name, &descriptor.digest.to_string(), Some(descriptor))
        .await?;
    if raw.bytes.len() as u64 != descriptor.size {
        let found = raw.bytes.len();
        return Err(format!(
            "{} has {found} bytes, its index says {}",
            descriptor.digest, descriptor.size
        )
        .into());
    }
    let (manifest, media_type) = Manifest::parse(&raw.bytes, Some(&descriptor.media_type))
        .map_err(|error| format!("{}: {error}", descriptor.digest))?;
    let subject = read_referrer(&raw.bytes, descriptor).map(|referring| referring.subject);
    Ok(Fetched {
        descriptor: Descriptor {
            media_type: media_type.into(),
            ..descriptor.clone()
        },
        manifest,
        subject,
    })
}

/// The configs and layers of the manifests, and the blobs that an index lists itself, once each.
pub(super) fn blobs_of<'a>(
    manifests: impl IntoIterator<Item = &'a Manifest>,
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
                add(config);
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
