//! The digests and tags that must be kept at a registry.

use crate::push::plan::deliveries;
use crate::push::state::Receipt;
use landfall_item::ChartName;
use landfall_item::lockfile::Lock;
use landfall_model::report::EntryKind;
use landfall_model::{DestinationMap, Digest, ImageRef};
use serde_json::Value;
use std::collections::BTreeSet;

/// The content that must be kept at a registry.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// Manifests that are kept in every repository.
    pub(super) digests: BTreeSet<Digest>,
    /// Tags that are kept, each with its repository.
    pub(super) tags: BTreeSet<(String, String)>,
    /// The manifests of locks, and the blobs under them.
    pub(super) locked: BTreeSet<Digest>,
}

impl Needed {
    /// Keeps everything that a push of `lock` delivers, and the images and charts that could not be
    /// locked: the registry may have the last copy of an image that upstream has removed.
    pub(crate) fn keep_lock(&mut self, lock: &Lock, mapping: &DestinationMap) {
        for delivery in deliveries(lock, mapping, &BTreeSet::new()) {
            self.tags
                .insert((delivery.destination.repository, delivery.tag));
        }
        for entry in lock.each_entry() {
            let manifests = entry.parts.iter().filter(|part| part.is_manifest());
            self.digests
                .extend(manifests.map(|part| part.descriptor.digest.clone()));
            self.locked
                .extend(entry.parts.into_iter().map(|part| part.descriptor.digest));
        }
        let unresolved = lock.unresolved.iter().map(|lost| (lost.kind, &lost.name));
        let accepted = lock.missing.iter().map(|lost| (lost.kind, &lost.name));
        for (kind, name) in unresolved.chain(accepted) {
            match kind {
                EntryKind::Image => self.keep_image(name, mapping),
                EntryKind::Chart => self.keep_chart(name, mapping),
                _ => {}
            }
        }
    }

    /// Keeps everything that the receipt of a push lists.
    pub(crate) fn keep_receipt(&mut self, receipt: &Receipt) {
        for item in &receipt.items {
            self.digests.insert(item.digest.clone());
            self.digests.extend(item.trimmed_from.clone());
            if let Some((repository, tag)) = item.at.rsplit_once(':') {
                self.tags.insert((repository.to_owned(), tag.to_owned()));
            }
        }
    }

    /// Keeps every image of pods, by its upstream name or its name at the registry. `dump` is the
    /// output of `kubectl get pods -A -o json`. Returns the number of different references in it.
    pub(crate) fn keep_pods(&mut self, dump: &Value, mapping: &DestinationMap) -> usize {
        let mut found = BTreeSet::new();
        find_images(dump, &mut found);
        for name in &found {
            self.keep_image(name, mapping);
        }
        found.len()
    }

    fn keep_image(&mut self, name: &str, mapping: &DestinationMap) {
        // an `imageID` may begin with a scheme: `docker-pullable://quay.io/…`
        let name = name.rsplit_once("://").map_or(name, |(_, name)| name);
        if let Ok(digest) = name.parse() {
            self.digests.insert(digest);
            return;
        }
        let Ok(image) = name.parse::<ImageRef>() else {
            return;
        };
        self.digests.extend(image.digest.clone());
        let Some(tag) = image.tag_or_latest() else {
            return;
        };
        // The name may be a name at the registry, or an upstream name that nodes resolve to a
        // mirror. The tags of both meanings are kept.
        if image.registry == mapping.target().registry {
            self.tags.insert((image.repository.clone(), tag.to_owned()));
        }
        let destinations = mapping.destinations(&image).into_iter();
        self.tags
            .extend(destinations.map(|at| (at.repository, tag.to_owned())));
    }

    fn keep_chart(&mut self, name: &str, mapping: &DestinationMap) {
        let Ok(chart) = ChartName::try_from(name.to_owned()) else {
            return;
        };
        let tag = chart.reference.tag.clone().unwrap_or_default();
        let destinations = mapping.destinations(&chart.reference).into_iter();
        self.tags
            .extend(destinations.map(|at| (at.repository, tag.clone())));
    }

    /// The repositories with tags that are kept.
    pub(crate) fn repositories(&self) -> BTreeSet<&str> {
        self.tags
            .iter()
            .map(|(repository, _)| repository.as_str())
            .collect()
    }
}

/// Finds the text of every `image`, `imageID` and `reference` (of an image volume), at any depth:
/// keeping too much is better than deleting an image that a pod needs.
fn find_images<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| find_images(one, found)),
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text)
                        if matches!(key.as_str(), "image" | "imageID" | "reference") =>
                    {
                        found.insert(text);
                    }
                    other => find_images(other, found),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn images_and_charts_that_could_not_be_locked_are_kept() {
        let text = "version: 1\n\
                    missing:\n\
                    - {kind: image, name: \"quay.io/gone/app:v1\", reason: gone, until: \"2027-01-31\"}\n\
                    - {kind: chart, name: \"oci://quay.io/charts/old:1.2.3+b\", reason: gone, until: \"2027-01-31\"}\n\
                    unresolved:\n\
                    - {kind: image, name: \"quay.io/team/app:v2\", cause: refused}\n\
                    - {kind: chart, name: \"oci://quay.io/charts/app:2.0.0\", cause: refused}\n\
                    - {kind: file, name: \"https://h.test/file\", cause: refused}\n...\n";
        let lock = Lock::parse("landfall.lock", text).unwrap();
        let mut needed = Needed::default();
        needed.keep_lock(&lock, &DestinationMap::to("r.test:5000".parse().unwrap()));
        let kept = [
            ("gone/app", "v1"),
            ("team/app", "v2"),
            ("charts/old", "1.2.3_b"),
            ("charts/app", "2.0.0"),
        ];
        let kept = kept.map(|(repository, tag)| (repository.to_owned(), tag.to_owned()));
        assert_eq!(needed.tags, kept.into());
    }

    #[test]
    fn pods_keep_their_images_by_any_of_their_names() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let dump = json!({"items": [{
            "spec": {
                "containers": [{"image": "quay.io/team/app:v1"}, {"image": "r.test:5000/other"}],
                "initContainers": [{"image": "busybox"}],
                "volumes": [{"image": {"reference": "quay.io/team/data:v2"}}],
            },
            "status": {"containerStatuses": [
                {"image": "x", "imageID": format!("docker-pullable://quay.io/team/app@{digest}")},
                {"imageID": format!("sha256:{}", "b".repeat(64))},
            ]},
        }]});
        let mut needed = Needed::default();
        let mapping = DestinationMap::to("r.test:5000".parse().unwrap());
        assert_eq!(needed.keep_pods(&dump, &mapping), 7);
        let has =
            |repository: &str, tag: &str| needed.tags.contains(&(repository.into(), tag.into()));
        for (repository, tag) in [
            ("team/app", "v1"),
            ("other", "latest"),
            ("library/busybox", "latest"),
            ("team/data", "v2"),
        ] {
            assert!(has(repository, tag), "{repository}:{tag} {:?}", needed.tags);
        }
        assert!(needed.digests.contains(&digest.parse().unwrap()) && needed.digests.len() == 2);
    }
}
