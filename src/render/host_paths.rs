//! Which path every upstream host has at the registry, and which of its repositories have another one: for clients that
//! can rename whatever they ask for.

use super::request::Request;
use crate::model::other_hosts;
use std::collections::{BTreeMap, BTreeSet};

/// Where the repositories of an upstream host are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HostPaths {
    /// The path before the repositories of the host; may be empty.
    pub prefix: String,
    /// The locked repositories below it.
    pub usual: BTreeSet<String>,
    /// Repositories that stand elsewhere, with their whole paths.
    pub others: BTreeSet<(String, String)>,
}

impl HostPaths {
    /// Whether each repository has the same name at the registry.
    pub(super) fn is_plain(&self) -> bool {
        self.prefix.is_empty() && self.others.is_empty()
    }
}

/// The hosts of the lock, and the other names of those hosts.
pub(super) fn host_paths(request: &Request<'_>) -> BTreeMap<String, HostPaths> {
    let mut hosts: BTreeMap<String, HostPaths> = BTreeMap::new();
    for image in request.images() {
        let Some(place) = request.mapping.image(image).into_iter().next() else { continue };
        let aliases = other_hosts(&image.registry).map(str::to_owned);
        for host in std::iter::once(image.registry.clone()).chain(aliases) {
            let prefix = request.mapping.at(&request.mapping.of_host(&host)).repository;
            let usual = below(&prefix, &image.repository);
            let paths = hosts.entry(host).or_insert_with(|| HostPaths { prefix, ..HostPaths::default() });
            if place.repository == usual {
                paths.usual.insert(image.repository.clone());
            } else {
                paths.others.insert((image.repository.clone(), place.repository.clone()));
            }
        }
    }
    hosts
}

/// `repository` below `prefix`, which may be empty.
pub(super) fn below(prefix: &str, repository: &str) -> String {
    if prefix.is_empty() { repository.to_owned() } else { format!("{prefix}/{repository}") }
}
