//! Maps every upstream host to its path at the registry, with the repositories that have another
//! path, for clients that can rewrite any name.

use super::request::RenderRequest;
use landfall_model::{ImageRef, alias_hosts};
use std::collections::{BTreeMap, BTreeSet};

/// The paths of the repositories of an upstream host at the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HostPaths {
    /// The path before the repositories of the host; may be empty.
    pub prefix: String,
    /// The locked repositories below that path.
    pub usual: BTreeSet<String>,
    /// The locked repositories with another path, each with its full path.
    pub others: BTreeSet<(String, String)>,
}

impl HostPaths {
    /// Whether every repository has the same name at the registry as upstream.
    pub(super) fn is_plain(&self) -> bool {
        self.prefix.is_empty() && self.others.is_empty()
    }
}

/// Returns the paths of the hosts in the lock and of their aliases. If a repository is locked under
/// a host and under its alias, each name keeps its own path.
pub(super) fn host_paths(request: &RenderRequest<'_>) -> BTreeMap<String, HostPaths> {
    let mut hosts: BTreeMap<String, HostPaths> = BTreeMap::new();
    let mut add = |host: &str, image: &ImageRef| {
        // one destination is enough: the client can be configured with any of the destinations
        let Some(destination) = request.mapping.destinations(image).into_iter().next() else {
            return;
        };
        let prefix = request
            .mapping
            .own_destination(&request.mapping.host_path(host))
            .repository;
        let usual = join_path(&prefix, &image.repository);
        let paths = hosts.entry(host.to_owned()).or_insert_with(|| HostPaths {
            prefix,
            ..HostPaths::default()
        });
        if destination.repository == usual {
            paths.usual.insert(image.repository.clone());
        } else {
            paths
                .others
                .insert((image.repository.clone(), destination.repository));
        }
    };
    let named: BTreeSet<String> = request.images().map(ImageRef::name).collect();
    for image in request.images() {
        add(&image.registry, image);
        for host in alias_hosts(&image.registry) {
            if !named.contains(&format!("{host}/{}", image.repository)) {
                add(host, image);
            }
        }
    }
    hosts
}

/// Returns the location of each host at the registry, and the location of each repository in
/// [`HostPaths::others`].
pub(super) fn registry_locations(request: &RenderRequest<'_>) -> Vec<(String, String)> {
    let registry = &request.mapping.target().registry;
    let mut locations = Vec::new();
    for (host, paths) in host_paths(request) {
        locations.push((host.clone(), location(registry, &paths.prefix)));
        let others = paths.others.iter();
        locations.extend(
            others.map(|(repository, path)| {
                (format!("{host}/{repository}"), location(registry, path))
            }),
        );
    }
    locations
}

fn location(registry: &str, path: &str) -> String {
    if path.is_empty() {
        registry.to_owned()
    } else {
        format!("{registry}/{path}")
    }
}

/// Joins `prefix`, which may be empty, and `repository`.
pub(super) fn join_path(prefix: &str, repository: &str) -> String {
    if prefix.is_empty() {
        repository.to_owned()
    } else {
        format!("{prefix}/{repository}")
    }
}
