//! Container images: index, manifests, configs and layers of one repository.

use super::foreign::is_foreign;
use super::{Entry, From, Part};
use crate::lock::Image;
use crate::report::Kind;

/// Takes a locked image apart.
pub(super) fn entry(image: &Image) -> Entry {
    let (registry, repository) = (image.name.registry.clone(), image.name.repository.clone());
    let blob = || From::Blob { registry: registry.clone(), repository: repository.clone() };
    let foreign = || From::Foreign {
        registry: registry.clone(),
        repository: repository.clone(),
        manifests: image.manifests_in_order().collect(),
    };
    let manifest = || From::Manifest { registry: registry.clone(), repository: repository.clone() };
    let mut parts: Vec<Part> = Vec::new();
    parts.extend(image.blobs.iter().map(|descriptor| {
        let from = if is_foreign(&descriptor.media_type) { foreign() } else { blob() };
        Part { descriptor: descriptor.clone(), from }
    }));
    parts.extend(image.manifests_in_order().map(|descriptor| Part { descriptor, from: manifest() }));
    if let Some(descriptor) = image.trimmed_descriptor() {
        let keep = image.manifests.iter().map(|child| child.digest.clone());
        let keep = keep.chain(image.blobs.iter().map(|blob| blob.digest.clone())).collect();
        let part = Part { descriptor, from: From::Trimmed { of: image.descriptor(), keep } };
        parts.insert(parts.len() - 1, part);
    }
    Entry {
        kind: Kind::Image,
        name: image.name.to_string(),
        digest: image.digest.clone(),
        layout_name: image.name.to_string(),
        top: image.descriptor(),
        parts,
    }
}
