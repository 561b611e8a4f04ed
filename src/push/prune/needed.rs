//! What stays at a registry: digests, wherever they stand, and tags of its repositories.

use crate::push::plan::deliveries;
use crate::push::receipt::Receipt;
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest, ImageRef};
use serde_json::Value;
use std::collections::BTreeSet;

/// What stays at a registry.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    pub(super) digests: BTreeSet<Digest>,
    /// Repository and tag.
    pub(super) tags: BTreeSet<(String, String)>,
    /// The manifests of locks, and the blobs under them.
    pub(super) locked: BTreeSet<Digest>,
}

impl Needed {
    /// Everything that `lock` puts there, and every manifest under it.
    pub(crate) fn lock(&mut self, lock: &Lock, mapping: &DestinationMap) {
        for delivery in deliveries(lock, mapping) {
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
    }

    /// Everything that an earlier push left there.
    pub(crate) fn receipt(&mut self, receipt: &Receipt) {
        for item in &receipt.items {
            self.digests.insert(item.digest.clone());
            self.digests.extend(item.trimmed_from.clone());
            if let Some((repository, tag)) = item.at.rsplit_once(':') {
                self.tags.insert((repository.to_owned(), tag.to_owned()));
            }
        }
    }

    /// Every image that pods run or name, by their own names or by those at the registry. `dump` is
    /// what `kubectl get pods -A -o json` prints. Returns how many were found.
    pub(crate) fn pods(&mut self, dump: &Value, mapping: &DestinationMap) -> usize {
        let mut found = BTreeSet::new();
        images(dump, &mut found);
        for name in &found {
            self.image(name, mapping);
        }
        found.len()
    }

    fn image(&mut self, name: &str, mapping: &DestinationMap) {
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
        // a name at the registry, or one that its mirror answers to
        if image.registry == mapping.target().registry {
            self.tags.insert((image.repository.clone(), tag.to_owned()));
        }
        let destinations = mapping.destinations(&image).into_iter();
        self.tags
            .extend(destinations.map(|at| (at.repository, tag.to_owned())));
    }

    /// The repositories of what stays, by tag.
    pub(crate) fn repositories(&self) -> BTreeSet<&str> {
        self.tags
            .iter()
            .map(|(repository, _)| repository.as_str())
            .collect()
    }
}

/// Every value of `image`, `imageID` and of an image volume's `reference`, wherever it stands: more
/// is kept rather than less.
fn images<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| images(one, found)),
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text)
                        if matches!(key.as_str(), "image" | "imageID" | "reference") =>
                    {
                        found.insert(text);
                    }
                    other => images(other, found),
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
        assert_eq!(needed.pods(&dump, &mapping), 7);
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
