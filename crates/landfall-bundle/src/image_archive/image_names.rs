//! The names of an image in an archive.

use landfall_item::{LockedImage, PushedItem};
use landfall_model::DestinationMap;
use std::collections::BTreeSet;

/// All names of one image.
pub(super) struct ImageNames {
    /// The names in the form `repository:tag`, sorted.
    pub tags: BTreeSet<String>,
    /// `repository@digest`, with the digest in the lock: a node that loaded the archive then
    /// resolves references with a digest, too.
    pub digests: BTreeSet<String>,
}

/// The names of `image` at its source registry, and with a `mapping` also at its destinations.
pub(super) fn names(image: &LockedImage, mapping: Option<&DestinationMap>) -> ImageNames {
    let there = mapping
        .map(|mapping| image.destinations(mapping))
        .unwrap_or_default();
    let mut repositories = vec![image.name.name()];
    repositories.extend(there.iter().map(ToString::to_string));
    let tag = image.destination_tag();
    ImageNames {
        tags: repositories
            .iter()
            .map(|repository| format!("{repository}:{tag}"))
            .collect(),
        digests: repositories
            .iter()
            .map(|repository| format!("{repository}@{}", image.digest))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::{Descriptor, Digest};

    #[test]
    fn an_image_has_its_source_names_and_those_at_all_destinations() {
        let digest = Digest::sha256(b"top");
        let top = Descriptor {
            digest: digest.clone(),
            size: 3,
            media_type: "t".into(),
        };
        let image = LockedImage::new("registry.k8s.io/pause:3.10".parse().unwrap(), top.clone());
        let mapping = DestinationMap::to("172.20.0.2:5000/pre".parse().unwrap());
        let reference_names = |image: &LockedImage, mapping| {
            let ImageNames { tags, digests } = names(image, mapping);
            tags.into_iter().chain(digests).collect::<Vec<_>>()
        };
        assert_eq!(
            reference_names(&image, Some(&mapping)),
            [
                "172.20.0.2:5000/pre/pause:3.10".to_owned(),
                "registry.k8s.io/pause:3.10".to_owned(),
                format!("172.20.0.2:5000/pre/pause@{digest}"),
                format!("registry.k8s.io/pause@{digest}"),
            ]
        );
        let bare = LockedImage::new(format!("quay.io/a/b@{digest}").parse().unwrap(), top);
        let tag = format!("quay.io/a/b:digest-{}", digest.short(12));
        assert_eq!(
            reference_names(&bare, None),
            [tag, format!("quay.io/a/b@{digest}")]
        );
    }
}
