//! A locked image as an item.

use super::locked::LockedImage;
use crate::text::oversize;
use landfall_content::{
    AttachedReferrer, EntryPart, LocalContent, LocalForm, LockEntry, PartOrigin,
};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, is_path_below, media_type};
use std::collections::BTreeSet;
use std::sync::Arc;

impl LockedImage {
    /// Sizes must be plausible, and the tags of referrers must have the form that cosign uses, so
    /// that they fit into a path and are not the tag of an image.
    pub(crate) fn implausibility(&self) -> Option<String> {
        let mut sizes = vec![self.size];
        sizes.extend(self.manifests.iter().map(|child| child.size));
        sizes.extend(self.blobs.iter().map(|blob| blob.size));
        sizes.extend(self.referrer_blobs.iter().map(|blob| blob.size));
        sizes.extend(self.trimmed.iter().map(|trimmed| trimmed.size));
        let referrers = self.referrers.as_deref().unwrap_or_default();
        sizes.extend(referrers.iter().map(|referrer| referrer.size));
        if let Some(fault) = oversize(sizes) {
            return Some(fault);
        }
        let mut archive = self.archive.iter().filter(|path| !path.is_empty());
        if let Some(path) = archive.find(|path| !is_path_below(path)) {
            return Some(format!("'{path}' is not a path of an archive"));
        }
        let tag = referrers
            .iter()
            .filter_map(|referrer| referrer.tag.as_ref())
            .find(|tag| !is_referrer_tag(tag))?;
        Some(format!("'{tag}' is not a tag of cosign"))
    }
}

/// Whether `text` is a tag of the form `sha256-<hex>.<ending>`. The length of the hex part and its
/// digits are not checked.
fn is_referrer_tag(text: &str) -> bool {
    // 128 is the maximum length of a tag in the distribution specification
    text.len() <= 128
        && text
            .strip_prefix("sha256-")
            .is_some_and(|rest| rest.contains('.'))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// Lists the parts of `image`: blobs first, then manifests in the order in which a registry accepts
/// them, the top last.
pub(crate) fn entry(image: &LockedImage) -> LockEntry {
    let (registry, repository): (Arc<str>, Arc<str>) = (
        image.name.registry.as_str().into(),
        image.name.repository.as_str().into(),
    );
    let archived = image.archive.as_ref().map(|path| {
        PartOrigin::Local(LocalContent {
            path: Some(path.clone()).filter(|path| !path.is_empty()),
            form: LocalForm::Image(image.name.clone()),
        })
    });
    let blob = || {
        archived.clone().unwrap_or_else(|| PartOrigin::Blob {
            registry: registry.clone(),
            repository: repository.clone(),
        })
    };
    let manifests: Arc<[Descriptor]> = image.manifests_in_order().collect();
    let foreign = || PartOrigin::Foreign {
        registry: registry.clone(),
        repository: repository.clone(),
        manifests: manifests.clone(),
    };
    let manifest = || {
        archived.clone().unwrap_or_else(|| PartOrigin::Manifest {
            registry: registry.clone(),
            repository: repository.clone(),
        })
    };
    let mut parts: Vec<EntryPart> = Vec::new();
    for descriptor in image.blobs.iter().chain(&image.referrer_blobs) {
        // a foreign layer may be available only at the `urls` of its manifest
        let origin = if image.archive.is_none() && media_type::is_foreign(&descriptor.media_type) {
            foreign()
        } else {
            blob()
        };
        parts.push(EntryPart {
            descriptor: descriptor.clone(),
            origin,
        });
    }
    parts.extend(image.manifests_in_order().map(|descriptor| EntryPart {
        descriptor,
        origin: manifest(),
    }));
    let mut known: BTreeSet<_> = image.manifests_in_order().map(|own| own.digest).collect();
    let referrers = referrers_of(image);
    for referrer in &referrers {
        if known.insert(referrer.descriptor.digest.clone()) {
            // registries reject an index whose children are missing, so the top stays last
            let part = EntryPart {
                descriptor: referrer.descriptor.clone(),
                origin: manifest(),
            };
            parts.insert(parts.len() - 1, part);
        }
    }
    if let Some(descriptor) = image.trimmed_descriptor() {
        // an index may also list blobs directly, so the blobs in the lock are kept as well
        let keep = image
            .manifests
            .iter()
            .map(|child| child.digest.clone())
            .chain(image.blobs.iter().map(|blob| blob.digest.clone()))
            .collect();
        let part = EntryPart {
            descriptor,
            origin: PartOrigin::Trimmed {
                of: image.descriptor(),
                keep,
            },
        };
        parts.insert(parts.len() - 1, part);
    }
    parts.retain(|part| !image.absent.contains(&part.descriptor.digest));
    LockEntry {
        kind: EntryKind::Image,
        name: image.name.to_string(),
        digest: image.digest.clone(),
        layout_name: image.name.to_string(),
        top: image.descriptor(),
        artifact_type: None,
        parts,
        referrers,
        referrer_blobs: blobs_of_referrers(image),
    }
}

/// The blobs that only referrers of `image` name.
pub(crate) fn blobs_of_referrers(image: &LockedImage) -> BTreeSet<Digest> {
    let own: BTreeSet<_> = image.blobs.iter().map(|blob| &blob.digest).collect();
    let blobs = image.referrer_blobs.iter().map(|blob| &blob.digest);
    blobs
        .filter(|digest| !own.contains(digest))
        .cloned()
        .collect()
}

/// The referrers of `image`.
pub(crate) fn referrers_of(image: &LockedImage) -> Vec<AttachedReferrer> {
    let own: BTreeSet<_> = image.manifests_in_order().map(|own| own.digest).collect();
    let referrers = image.referrers.iter().flatten();
    referrers
        .map(|referrer| AttachedReferrer {
            descriptor: referrer.descriptor(),
            tag: referrer.tag.clone(),
            subject: referrer.subject.clone(),
            is_child: own.contains(&referrer.digest),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lockfile::Lock;

    #[test]
    fn each_referrer_is_one_part_and_the_top_stays_last() {
        let digest = |text: &str| Digest::sha256(text.as_bytes());
        let text = format!(
            "version: 1\nimages:\n- name: q.io/a:1\n  digest: {top}\n  mediaType: i\n  size: 9\n  manifests:\n  \
         - {{digest: {child}, size: 1, mediaType: m}}\n  - {{digest: {own}, size: 2, mediaType: m}}\n  \
         trimmed: {{digest: {trimmed}, size: 3}}\n  referrers:\n  \
         - {{digest: {sig}, size: 4, mediaType: m, tag: sha256-0.sig}}\n  \
         - {{digest: {sig}, size: 4, mediaType: m, tag: sha256-1.sig}}\n  \
         - {{digest: {own}, size: 2, mediaType: m, subject: {child}}}\n  referrerBlobs:\n  - {blob} 5 b\n",
            top = digest("top"),
            child = digest("child"),
            own = digest("own"),
            trimmed = digest("trimmed"),
            sig = digest("sig"),
            blob = digest("blob"),
        );
        let entry = entry(&Lock::parse("l", &text).unwrap().images[0]);
        let parts: Vec<&Digest> = entry
            .parts
            .iter()
            .map(|part| &part.descriptor.digest)
            .collect();
        let wanted = ["blob", "child", "own", "sig", "trimmed", "top"].map(digest);
        assert_eq!(parts, wanted.iter().collect::<Vec<_>>());
        assert_eq!(entry.referrers.len(), 3);
        // a child of the index is pushed before the index, even if it is a referrer as well
        assert!(entry.only_refers(&digest("sig")) && !entry.only_refers(&digest("own")));
    }

    #[test]
    fn foreign_layers_share_the_list_of_manifests() {
        let kind = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
        let [top, child, one, other] =
            ["top", "child", "one", "other"].map(|text| Digest::sha256(text.as_bytes()));
        let text = format!(
            "version: 1\nimages:\n- name: q.io/a:1\n  digest: {top}\n  mediaType: i\n  size: 9\n  \
             manifests:\n  - {{digest: {child}, size: 1, mediaType: m}}\n  blobs:\n  \
             - {one} 5 {kind}\n  - {other} 6 {kind}\n",
        );
        let entry = entry(&Lock::parse("l", &text).unwrap().images[0]);
        let lists: Vec<&Arc<[Descriptor]>> = entry
            .parts
            .iter()
            .filter_map(|part| match &part.origin {
                PartOrigin::Foreign { manifests, .. } => Some(manifests),
                _ => None,
            })
            .collect();
        let [first, second] = lists[..] else {
            panic!("{lists:?}");
        };
        assert_eq!(first.len(), 2);
        assert!(Arc::ptr_eq(first, second));
    }
}
