//! Maps every upstream host to its path at the registry, with the repositories that have another
//! path, for clients that can rewrite any name.

use crate::request::RenderRequest;
use landfall_item::LockedImage;
use landfall_model::{Destination, Failure, ImageRef, alias_hosts, path_prefix};
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

/// A path of the registry that mirrors an upstream host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostMirror {
    /// The path before every repository of the host; may be empty.
    pub prefix: String,
    /// The repository by which the site's credentials for the mirror are selected: the repository
    /// of one image below the prefix, or the prefix itself.
    pub repository: String,
}

/// Returns the mirrors of each upstream host in the lock, of each alias of these hosts, and of the
/// registry itself. If upstream must not be used, the entry `_default` has the mirror of all other
/// hosts. If a host has several mirrors, clients try them in the order of the list.
///
/// Fails if an earlier mirror has a different image with the same name, because clients would pull
/// that image.
pub(super) fn host_mirrors(
    request: &RenderRequest<'_>,
) -> Result<BTreeMap<String, Vec<HostMirror>>, Failure> {
    let target = request.mapping.target();
    let plain = |prefix: &str| HostMirror {
        prefix: prefix.into(),
        repository: prefix.into(),
    };
    let mut hosts: BTreeMap<String, Vec<HostMirror>> = BTreeMap::new();
    for image in request.images() {
        let aliases = alias_hosts(&image.registry).map(str::to_owned);
        // pods may name an image by any alias of its host, such as k8s.gcr.io for registry.k8s.io
        for host in std::iter::once(image.registry.clone()).chain(aliases) {
            let usual = usual_path(request, &host);
            let mirrors = hosts.entry(host).or_default();
            add_mirror(mirrors, image, &request.mapping.destinations(image), &usual);
        }
    }
    for (host, mirrors) in &mut hosts {
        // the mirror at the usual path of a host is tried first, because it has most of the host's
        // images; then the mirrors at the usual paths of the host's aliases
        let mut usual = vec![usual_path(request, host)];
        usual.extend(alias_hosts(host).map(|alias| usual_path(request, alias)));
        mirrors.sort_by_key(|mirror| {
            let position = usual.iter().position(|path| *path == mirror.prefix);
            position.unwrap_or(usual.len())
        });
        check_unambiguous(host, mirrors, request)?;
    }
    // names that are already rewritten point at the registry itself
    hosts.insert(target.registry.clone(), vec![plain("")]);
    if !request.upstream_fallback() {
        hosts.insert("_default".into(), vec![plain(&target.prefix)]);
    }
    Ok(hosts)
}

/// The path at the registry below which the repositories of `host` are, unless the site gives them
/// other paths.
fn usual_path(request: &RenderRequest<'_>, host: &str) -> String {
    let path = request.mapping.host_path(host);
    request.mapping.own_destination(&path).repository
}

/// Adds a mirror that has `image`, preferably the mirror at the `usual` path. Adds nothing if one
/// of `mirrors` already has the image.
fn add_mirror(
    mirrors: &mut Vec<HostMirror>,
    image: &ImageRef,
    destinations: &[Destination],
    usual: &str,
) {
    // clients only add a prefix, so they cannot reach a destination with another name
    let prefixes = || {
        destinations
            .iter()
            .filter_map(|destination| path_prefix(&destination.repository, &image.repository))
    };
    if prefixes().any(|prefix| mirrors.iter().any(|mirror| mirror.prefix == prefix)) {
        return;
    }
    if let Some(prefix) = prefixes()
        .find(|prefix| *prefix == usual)
        .or_else(|| prefixes().next())
    {
        let repository = if prefix.is_empty() {
            image.repository.clone()
        } else {
            format!("{prefix}/{}", image.repository)
        };
        let mirror = HostMirror {
            prefix: prefix.into(),
            repository,
        };
        mirrors.push(mirror);
    }
}

/// For each image of `host` and of its aliases, fails if the first mirror with the image's name has
/// a different image under this name.
fn check_unambiguous(
    host: &str,
    mirrors: &[HostMirror],
    request: &RenderRequest<'_>,
) -> Result<(), Failure> {
    if mirrors.len() < 2 {
        return Ok(());
    }
    let mut by_name: BTreeMap<String, (&ImageRef, &landfall_model::Digest)> = BTreeMap::new();
    // an image without a tag is pulled by its digest, which no other image has
    for image in &request.lock.images {
        let Some(tag) = image.name.tag_or_latest() else {
            continue;
        };
        for destination in request.mapping.destinations(&image.name) {
            by_name.insert(
                format!("{}:{tag}", destination.repository),
                (&image.name, &image.digest),
            );
        }
    }
    let is_own = |image: &&LockedImage| image.name.registry == host;
    let own: BTreeSet<(&str, Option<&str>)> = request
        .lock
        .images
        .iter()
        .filter(is_own)
        .map(|image| (&*image.name.repository, image.name.tag_or_latest()))
        .collect();
    let by_alias = request.lock.images.iter().filter(|image| {
        let ImageRef {
            registry,
            repository,
            ..
        } = &image.name;
        // if a name is locked under both hosts, each host has its own image
        let is_locked = own.contains(&(&**repository, image.name.tag_or_latest()));
        alias_hosts(registry).any(|alias| alias == host) && !is_locked
    });
    for image in request.lock.images.iter().filter(is_own).chain(by_alias) {
        let Some(tag) = image.name.tag_or_latest() else {
            continue;
        };
        // the names in the order in which a client requests them
        let requested = mirrors.iter().map(|mirror| match mirror.prefix.as_str() {
            "" => format!("{}:{tag}", image.name.repository),
            prefix => format!("{prefix}/{}:{tag}", image.name.repository),
        });
        let first = requested
            .into_iter()
            .find_map(|name| Some((name.clone(), *by_name.get(&name)?)));
        if let Some((name, (other, digest))) = first
            && *digest != image.digest
        {
            return Err(Failure::refused(format!(
                "{}{} would be pulled from {name}, which is {other}; give {other} its own path in \
                 the site, under registry.paths",
                image.name,
                if image.name.registry == host {
                    String::new()
                } else {
                    format!(", requested from {host},")
                }
            )));
        }
    }
    Ok(())
}
