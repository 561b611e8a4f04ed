//! What of a locked image is for some platforms: its manifests, and all that they name, from content that is at hand.

use super::locked::Image;
use super::manifests::{ReadError, is_manifest, read_manifest, read_small};
use super::platforms::{LacksPlatform, choose, platform_of_config, satisfy};
use crate::content::BlobRead;
use crate::model::{Child, Descriptor, Digest, Manifest, ManifestError, Platform, media_type, trim_index};
use std::collections::{BTreeSet, VecDeque};

/// What of an image is for some platforms.
#[derive(Debug)]
pub(crate) struct Selection {
    /// The index or manifest that stands for the image.
    pub top: Descriptor,
    /// The bytes of the top, where it is the image's index without what is left out.
    pub trimmed: Option<Vec<u8>>,
    /// Manifests, then the blobs that they name, each once. A trimmed top is not among them.
    pub parts: Vec<Descriptor>,
}

/// The manifest of an image for one platform.
#[derive(Debug)]
pub(crate) struct OneManifest {
    /// It itself.
    pub manifest: Descriptor,
    /// The config blob.
    pub config: Descriptor,
    /// The layers, in order, with repetitions.
    pub layers: Vec<Descriptor>,
    platform: Option<Platform>,
}

/// Why nothing can be selected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectionError {
    /// A manifest cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is not for a platform that was asked for.
    #[error(transparent)]
    Lacks(#[from] LacksPlatform),
    /// One platform is wanted, and it has several that fit.
    #[error("it is for {}", .0.join(", "))]
    Several(Vec<String>),
    /// An image is wanted, and its config says that it is something else.
    #[error("it is no container image, its config is {0}")]
    NoImage(String),
    /// The trimmed index of the lock does not follow from the index.
    #[error("{0} is not its index without what is left out, as the lock says")]
    Trimmed(Digest),
}

impl Image {
    /// What of it is for `platforms`, as far as the lock has it; all that the lock has where there are none. An index that
    /// would name more than that is trimmed by the fixed rule.
    pub(crate) fn select(
        &self,
        blobs: &dyn BlobRead,
        platforms: &[Platform],
    ) -> Result<Selection, SelectionError> {
        let own = self.descriptor();
        let (bytes, top, _) = read_manifest(blobs, &own)?;
        let Manifest::Index(children) = top else {
            let image = one(own.clone(), top, self.platform.clone()).filter(OneManifest::is_image);
            if let Some(image) = image.filter(|_| !platforms.is_empty()) {
                satisfy(&[&image.platform(blobs)?], platforms)?;
            }
            let parts = with_all_below(blobs, [own.clone()])?;
            return Ok(Selection { top: own, trimmed: None, parts });
        };
        let there = self.locked_children(&children);
        let chosen = choose(&there, platforms)?;
        let descriptors = || chosen.iter().map(|child| child.descriptor.clone());
        let mut parts = with_all_below(blobs, descriptors())?;
        if chosen.len() == children.len() {
            parts.insert(0, own.clone());
            return Ok(Selection { top: own, trimmed: None, parts });
        }
        let keep = descriptors().map(|child| child.digest).collect();
        let bytes = trim_index(&bytes, &keep).map_err(|source| unreadable(&own, source))?;
        let top = Descriptor { digest: Digest::sha256(&bytes), size: bytes.len() as u64, ..own };
        match &self.trimmed {
            Some(locked) if chosen.len() == there.len() && locked.digest != top.digest => {
                Err(SelectionError::Trimmed(locked.digest.clone()))
            }
            _ => Ok(Selection { top, trimmed: Some(bytes), parts }),
        }
    }

    /// Its manifest for `platform`, or its only one.
    pub(crate) fn select_one(
        &self,
        blobs: &dyn BlobRead,
        platform: Option<&Platform>,
    ) -> Result<OneManifest, SelectionError> {
        let own = self.descriptor();
        let (_, top, _) = read_manifest(blobs, &own)?;
        let mut found = Vec::new();
        let mut queue = VecDeque::new();
        match top {
            Manifest::Index(children) => queue.extend(self.locked_children(&children)),
            top @ Manifest::Image { .. } => found.extend(one(own, top, self.platform.clone())),
        }
        let mut seen = BTreeSet::new();
        while let Some(child) = queue.pop_front() {
            let is_unknown = child.platform.as_ref().is_some_and(Platform::is_unknown);
            let is_other = is_unknown || child.attests.is_some() || !is_manifest(&child);
            if is_other || !seen.insert(child.descriptor.digest.clone()) {
                continue;
            }
            match read_manifest(blobs, &child.descriptor)?.1 {
                Manifest::Index(children) => queue.extend(children),
                manifest => found.extend(one(child.descriptor, manifest, child.platform)),
            }
        }
        let other = found.iter().map(|one| one.config.media_type.to_string()).next();
        found.retain(OneManifest::is_image);
        if found.is_empty() {
            return Err(SelectionError::NoImage(other.unwrap_or_else(|| "not there".into())));
        }
        let Some(wanted) = platform else { return only(blobs, found) };
        let platforms = found.iter().map(|one| one.platform(blobs)).collect::<Result<Vec<_>, _>>()?;
        satisfy(&platforms.iter().collect::<Vec<_>>(), std::slice::from_ref(wanted))?;
        let mut fitting: Vec<(OneManifest, Platform)> =
            found.into_iter().zip(platforms).filter(|(_, platform)| platform.satisfies(wanted)).collect();
        if let Some(at) = fitting.iter().position(|(_, platform)| platform == wanted) {
            return Ok(fitting.swap_remove(at).0);
        }
        only(blobs, fitting.into_iter().map(|(one, _)| one).collect())
    }

    /// Those of its index's children that the lock has.
    fn locked_children(&self, children: &[Child]) -> Vec<Child> {
        let manifests = self.manifests.iter().map(|child| &child.digest);
        let locked: BTreeSet<&Digest> = manifests.chain(self.blobs.iter().map(|blob| &blob.digest)).collect();
        children.iter().filter(|child| locked.contains(&child.descriptor.digest)).cloned().collect()
    }
}

impl OneManifest {
    /// Whether it is a container image, and no artifact.
    fn is_image(&self) -> bool {
        media_type::is_image_config(&self.config.media_type)
    }

    /// Its platform, by the index that lists it, or else by its config.
    fn platform(&self, blobs: &dyn BlobRead) -> Result<Platform, SelectionError> {
        if let Some(platform) = &self.platform {
            return Ok(platform.clone());
        }
        let bytes = read_small(blobs, &self.config)?;
        let json = |error: serde_json::Error| ManifestError::Json(error.to_string());
        platform_of_config(&bytes).map_err(|error| unreadable(&self.config, json(error)))
    }
}

fn one(manifest: Descriptor, parsed: Manifest, platform: Option<Platform>) -> Option<OneManifest> {
    match parsed {
        Manifest::Image { config, layers, .. } => Some(OneManifest { manifest, config, layers, platform }),
        Manifest::Index(_) => None,
    }
}

/// The only one of `found`, which is not empty.
fn only(blobs: &dyn BlobRead, mut found: Vec<OneManifest>) -> Result<OneManifest, SelectionError> {
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        _ => {
            let platforms = found.iter().map(|one| Ok(one.platform(blobs)?.to_string()));
            let platforms = platforms.collect::<Result<BTreeSet<_>, SelectionError>>()?;
            Err(SelectionError::Several(platforms.into_iter().collect()))
        }
    }
}

/// `roots` and the manifests below them, then all blobs that they name, each once.
fn with_all_below(
    blobs: &dyn BlobRead,
    roots: impl IntoIterator<Item = Descriptor>,
) -> Result<Vec<Descriptor>, ReadError> {
    let (mut manifests, mut named, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut queue: VecDeque<Descriptor> = roots.into_iter().collect();
    while let Some(next) = queue.pop_front() {
        if !media_type::is_manifest(&next.media_type) {
            named.push(next);
        } else if seen.insert(next.digest.clone()) {
            match read_manifest(blobs, &next)?.1 {
                Manifest::Index(children) => queue.extend(children.into_iter().map(|child| child.descriptor)),
                Manifest::Image { config, layers, .. } => {
                    named.push(config);
                    named.extend(layers);
                }
            }
            manifests.push(next);
        }
    }
    manifests.extend(named.into_iter().filter(|blob| seen.insert(blob.digest.clone())));
    Ok(manifests)
}

fn unreadable(descriptor: &Descriptor, source: ManifestError) -> SelectionError {
    ReadError::Manifest { digest: descriptor.digest.clone(), source }.into()
}
