//! The path of every upstream host at the registry, and the repositories with another path, for
//! clients that can rewrite any name.

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
    /// The repositories elsewhere, with their full paths.
    pub others: BTreeSet<(String, String)>,
}

impl HostPaths {
    /// Whether each repository has the same name at the registry.
    pub(super) fn is_plain(&self) -> bool {
        self.prefix.is_empty() && self.others.is_empty()
    }
}

/// Returns the paths of the hosts in the lock and of their aliases. A repository that is locked
/// under both names has the path of each name.
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

/// Returns every host, and every repository that is elsewhere, with its address at the registry.
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

/// Joins `prefix`, which may be empty, and `repository`.
pub(super) fn join_path(prefix: &str, repository: &str) -> String {
    if prefix.is_empty() {
        repository.to_owned()
    } else {
        format!("{prefix}/{repository}")
    }
}
