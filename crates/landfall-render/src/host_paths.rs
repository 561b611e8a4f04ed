//! Which path every upstream host has at the registry, and which of its repositories have another
//! one: for clients that can rename whatever they ask for.

use super::request::RenderRequest;
use landfall_model::{ImageRef, alias_hosts};
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

/// The hosts of the lock, and the other names of those hosts: a repository that is locked under
/// both names goes where each name goes.
pub(super) fn host_paths(request: &RenderRequest<'_>) -> BTreeMap<String, HostPaths> {
    let mut hosts: BTreeMap<String, HostPaths> = BTreeMap::new();
    let mut add = |host: &str, image: &ImageRef| {
        let Some(place) = request.mapping.destinations(image).into_iter().next() else {
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
        if place.repository == usual {
            paths.usual.insert(image.repository.clone());
        } else {
            paths
                .others
                .insert((image.repository.clone(), place.repository));
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

/// Every host and every repository that stands elsewhere, each with its place at the registry.
pub(super) fn registry_places(request: &RenderRequest<'_>) -> Vec<(String, String)> {
    let own = &request.mapping.target().registry;
    let place = |path: &str| {
        if path.is_empty() {
            own.clone()
        } else {
            format!("{own}/{path}")
        }
    };
    let mut places = Vec::new();
    for (host, paths) in host_paths(request) {
        places.push((host.clone(), place(&paths.prefix)));
        let others = paths.others.iter();
        places
            .extend(others.map(|(repository, path)| (format!("{host}/{repository}"), place(path))));
    }
    places
}

/// `repository` below `prefix`, which may be empty.
pub(super) fn join_path(prefix: &str, repository: &str) -> String {
    if prefix.is_empty() {
        repository.to_owned()
    } else {
        format!("{prefix}/{repository}")
    }
}
