//! Maps upstream hosts to paths of the registry, for clients that can only put a path before a
//! name.

use super::error::RenderError;
use super::request::RenderRequest;
use landfall_model::{Destination, ImageRef, alias_hosts, path_prefix};
use std::collections::BTreeMap;

/// A path of the registry that mirrors an upstream host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostMirror {
    /// The path before every repository of the host; may be empty.
    pub prefix: String,
    /// The repository by which the site's credentials for the mirror are selected: that of one
    /// image below the prefix, or the prefix itself.
    pub repository: String,
}

/// Returns the mirrors of each upstream host of the lock, of the registry itself and, if upstream
/// must not be used, of every other host (`_default`). A host may have several mirrors, which
/// clients try in this order.
///
/// Fails if an earlier mirror has a different image with the same name, because clients would pull
/// that image.
pub(super) fn host_mirrors(
    request: &RenderRequest<'_>,
) -> Result<BTreeMap<String, Vec<HostMirror>>, RenderError> {
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
            let usual = request
                .mapping
                .own_destination(&request.mapping.host_path(&host))
                .repository;
            let mirrors = hosts.entry(host).or_default();
            add_mirror(mirrors, image, &request.mapping.destinations(image), &usual);
        }
    }
    for (host, mirrors) in &hosts {
        check_unambiguous(host, mirrors, request)?;
    }
    // names that are already rewritten point at the registry itself
    hosts.insert(target.registry.clone(), vec![plain("")]);
    if !request.upstream_fallback() {
        hosts.insert("_default".into(), vec![plain(&target.prefix)]);
    }
    Ok(hosts)
}

/// Adds the mirror that has `image`, unless one of `mirrors` has it. The mirror at the `usual` path
/// of the host is tried first, because it has most of the host's images.
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
        mirrors.insert(if prefix == usual { 0 } else { mirrors.len() }, mirror);
    }
}

/// Fails if the first mirror with the name of an image of `host` has a different image there.
fn check_unambiguous(
    host: &str,
    mirrors: &[HostMirror],
    request: &RenderRequest<'_>,
) -> Result<(), RenderError> {
    if mirrors.len() < 2 {
        return Ok(());
    }
    let mut by_name: BTreeMap<String, (&ImageRef, &landfall_model::Digest)> = BTreeMap::new();
    for image in &request.lock.images {
        for destination in request.mapping.destinations(&image.name) {
            let tag = image.name.tag_or_latest().unwrap_or_default();
            by_name.insert(
                format!("{}:{tag}", destination.repository),
                (&image.name, &image.digest),
            );
        }
    }
    for image in request
        .lock
        .images
        .iter()
        .filter(|image| image.name.registry == host)
    {
        let tag = image.name.tag_or_latest().unwrap_or_default();
        // the names that a client requests, in its order
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
            return Err(RenderError::Refused(format!(
                "{} would be pulled from {name}, which is {other}; give {other} its own path in \
                 the site, under registry.paths",
                image.name
            )));
        }
    }
    Ok(())
}
