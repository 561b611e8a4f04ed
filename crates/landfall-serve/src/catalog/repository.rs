//! One repository of the bundles: its tags, manifests and referrers.

use crate::response::RequestError;
use landfall_model::{
    Descriptor, Digest, alias_hosts, canonical_host, host_component, is_repository, read_referrer,
};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// A repository by its name at this server. Several source repositories may map to it.
#[derive(Default)]
pub(crate) struct ServedRepository {
    /// Tag → full name at the source → manifest.
    tags: BTreeMap<String, BTreeMap<String, Descriptor>>,
    manifests: BTreeMap<Digest, Descriptor>,
    /// Referrers by subject; built by the first request for them.
    referrers: OnceLock<BTreeMap<Digest, Vec<BundleReferrer>>>,
}

/// A manifest with a subject, in a bundle.
pub(crate) struct BundleReferrer {
    pub(crate) digest: Digest,
    /// Its descriptor with annotations, as a referrers response lists it.
    pub(crate) entry: Box<RawValue>,
}

impl ServedRepository {
    /// Adds a manifest that can be pulled by digest.
    pub(crate) fn add_manifest(&mut self, manifest: Descriptor) {
        self.manifests.insert(manifest.digest.clone(), manifest);
    }

    /// Points `tag` at `manifest`, which the source calls `full_name`. Returns the manifest that
    /// the tag had under this full name before.
    pub(crate) fn add_tag(
        &mut self,
        tag: &str,
        full_name: &str,
        manifest: Descriptor,
    ) -> Option<Descriptor> {
        self.tags
            .entry(tag.to_owned())
            .or_default()
            .insert(full_name.to_owned(), manifest)
    }

    /// The manifest of `tag`. Fails if several source repositories map here and their tags have
    /// different digests: the server does not guess which one is meant.
    pub(crate) fn tag(&self, tag: &str) -> Result<Option<&Descriptor>, RequestError> {
        let Some(by_full_name) = self.tags.get(tag) else {
            return Ok(None);
        };
        let digests: BTreeSet<&Digest> = by_full_name
            .values()
            .map(|descriptor| &descriptor.digest)
            .collect();
        // several names of one digest are not ambiguous
        if digests.len() > 1 {
            let full_names: Vec<&str> = by_full_name.keys().map(String::as_str).collect();
            return Err(RequestError::not_found(
                "MANIFEST_UNKNOWN",
                format!(
                    "the name is ambiguous: it means {}; request one of them with its host in \
                     front",
                    full_names.join(" or ")
                ),
            ));
        }
        Ok(by_full_name.values().next())
    }

    /// Whether bundles have this tag, which may be ambiguous.
    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        self.tags.contains_key(tag)
    }

    /// The manifest with this digest.
    pub(crate) fn manifest(&self, digest: &Digest) -> Option<&Descriptor> {
        self.manifests.get(digest)
    }

    /// The names of all tags, sorted.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &String> {
        self.tags.keys()
    }

    /// The referrers of `subject`. The first call reads every manifest of the repository with
    /// `read`, since a lock does not record subjects.
    pub(crate) fn referrers(
        &self,
        subject: &Digest,
        read: impl Fn(&Descriptor) -> Result<Option<Vec<u8>>, RequestError>,
    ) -> Result<&[BundleReferrer], RequestError> {
        if self.referrers.get().is_none() {
            let referrers = self.read_referrers(read)?;
            // another request may have built the same list meanwhile
            let _ = self.referrers.set(referrers);
        }
        let of_subject = self.referrers.get().and_then(|all| all.get(subject));
        Ok(of_subject.map_or(&[], Vec::as_slice))
    }

    fn read_referrers(
        &self,
        read: impl Fn(&Descriptor) -> Result<Option<Vec<u8>>, RequestError>,
    ) -> Result<BTreeMap<Digest, Vec<BundleReferrer>>, RequestError> {
        let mut by_subject: BTreeMap<Digest, Vec<BundleReferrer>> = BTreeMap::new();
        for descriptor in self.manifests.values() {
            // the manifest is missing from a partial bundle, or too large to be read
            let Some(bytes) = read(descriptor)? else {
                continue;
            };
            let Some(referrer) = read_referrer(&bytes, descriptor) else {
                continue;
            };
            let entry = to_raw_value(&referrer.entry)
                .map_err(|error| RequestError::internal(error.to_string()))?;
            by_subject
                .entry(referrer.subject)
                .or_default()
                .push(BundleReferrer {
                    digest: descriptor.digest.clone(),
                    entry,
                });
        }
        Ok(by_subject)
    }
}

/// The repository name with its source host in front: `quay.io/a/b`. A port becomes `host_5001`.
pub(crate) fn repository_of_host(host: &str, repository: &str) -> String {
    format!("{}/{repository}", host_component(host))
}

/// The names under which `name` of the host `ns` may have been pushed: with the host or one of its
/// aliases in front, and without it, as images are pushed to a registry that mirrors only that
/// host.
pub(crate) fn pushed_names(name: &str, ns: Option<&str>) -> Vec<String> {
    let with_host = |host: &str| {
        let full = repository_of_host(host, name);
        is_repository(&full).then_some(full)
    };
    let mut names = Vec::new();
    // the names with a host come first, because they cannot mean another image
    if let Some(host) = ns.map(str::to_ascii_lowercase) {
        let host = canonical_host(&host);
        names.extend(with_host(host));
        names.extend(alias_hosts(host).filter_map(with_host));
    }
    names.push(name.to_owned());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_content_is_found_by_the_other_names_of_its_host() {
        for (ns, names) in [
            (None, &["a/b"][..]),
            (Some("Quay.io"), &["quay.io/a/b", "a/b"][..]),
            (Some("registry-1.docker.io"), &["docker.io/a/b", "a/b"][..]),
            (
                Some("k8s.gcr.io"),
                &["k8s.gcr.io/a/b", "registry.k8s.io/a/b", "a/b"][..],
            ),
        ] {
            assert_eq!(pushed_names("a/b", ns), names, "{ns:?}");
        }
    }
}
