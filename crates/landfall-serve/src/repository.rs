//! One repository of the bundles: its tags, manifests and referrers.

use super::response::ApiError;
use landfall_model::host_component;
use landfall_model::{Descriptor, Digest, is_repository, read_referrer};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// A repository by its name here. One or more source repositories map to it.
#[derive(Default)]
pub(super) struct Repository {
    /// Tag -> full name at the source -> manifest.
    tags: BTreeMap<String, BTreeMap<String, Descriptor>>,
    manifests: BTreeMap<Digest, Descriptor>,
    /// By their subjects.
    referrers: OnceLock<BTreeMap<Digest, Vec<HeldReferrer>>>,
}

/// A manifest with a subject.
pub(super) struct HeldReferrer {
    pub(super) digest: Digest,
    /// Its entry in a list of referrers.
    pub(super) entry: Box<RawValue>,
}

impl Repository {
    /// Adds a manifest that is served by its digest.
    pub(super) fn add(&mut self, manifest: Descriptor) {
        self.manifests.insert(manifest.digest.clone(), manifest);
    }

    /// Makes `tag` stand for `manifest`, which is called `name` at its source. Returns what it
    /// stood for under this name.
    pub(super) fn add_tag(
        &mut self,
        tag: &str,
        name: &str,
        manifest: Descriptor,
    ) -> Option<Descriptor> {
        self.tags
            .entry(tag.to_owned())
            .or_default()
            .insert(name.to_owned(), manifest)
    }

    /// The manifest of `tag`.
    ///
    /// # Errors
    /// When the tag stands for different manifests of several source repositories.
    pub(super) fn tag(&self, tag: &str) -> Result<Option<&Descriptor>, ApiError> {
        let Some(names) = self.tags.get(tag) else {
            return Ok(None);
        };
        let digests: BTreeSet<&Digest> = names
            .values()
            .map(|descriptor| &descriptor.digest)
            .collect();
        if digests.len() > 1 {
            let names: Vec<&str> = names.keys().map(String::as_str).collect();
            return Err(ApiError::not_found(
                "MANIFEST_UNKNOWN",
                format!(
                    "this name has two meanings: {}; ask for one of them with its host in front",
                    names.join(" and ")
                ),
            ));
        }
        Ok(names.values().next())
    }

    /// The manifest with this digest.
    pub(super) fn manifest(&self, digest: &Digest) -> Option<&Descriptor> {
        self.manifests.get(digest)
    }

    /// All tags, sorted.
    pub(super) fn tags(&self) -> impl Iterator<Item = &String> {
        self.tags.keys()
    }

    /// The referrers of `subject` and their entries. The first call reads all manifests of the
    /// repository.
    ///
    /// # Errors
    /// When a manifest cannot be read.
    pub(super) fn referrers(
        &self,
        subject: &Digest,
        read: impl Fn(&Descriptor) -> Result<Option<Vec<u8>>, ApiError>,
    ) -> Result<&[HeldReferrer], ApiError> {
        if self.referrers.get().is_none() {
            let mut found: BTreeMap<Digest, Vec<HeldReferrer>> = BTreeMap::new();
            for descriptor in self.manifests.values() {
                let Some(bytes) = read(descriptor)? else {
                    continue;
                };
                if let Some(referrer) = read_referrer(&bytes, descriptor) {
                    let entry = to_raw_value(&referrer.entry);
                    let entry = entry.map_err(|error| ApiError::internal(error.to_string()))?;
                    let held = HeldReferrer {
                        digest: descriptor.digest.clone(),
                        entry,
                    };
                    found.entry(referrer.subject).or_default().push(held);
                }
            }
            let _ = self.referrers.set(found);
        }
        Ok(self
            .referrers
            .get()
            .and_then(|found| found.get(subject))
            .map_or(&[], Vec::as_slice))
    }
}

/// The name with its source host in front: `quay.io/a/b`; a port becomes `host_5001`.
pub(super) fn by_host(host: &str, repository: &str) -> String {
    format!("{}/{repository}", host_component(host))
}

/// The names under which `name` of the host `ns` may have been pushed: with the host in front, or
/// without it, as into any registry that stands in for others.
pub(super) fn pushed_names(name: &str, ns: Option<&str>) -> Vec<String> {
    let full = ns
        .map(|host| by_host(&host.to_ascii_lowercase(), name))
        .filter(|full| is_repository(full));
    full.into_iter().chain([name.to_owned()]).collect()
}
