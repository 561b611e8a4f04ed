//! The registry as mirrors of upstream hosts, for clients that can only put a path before a name.

use super::error::RenderError;
use super::request::RenderRequest;
use landfall_model::{Destination, ImageRef, alias_hosts, path_prefix};
use std::collections::BTreeMap;

/// A path of the registry that mirrors an upstream host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostMirror {
    /// The path before every repository of the host; may be empty.
    pub prefix: String,
    /// The repository of one image below the prefix, by which the credentials are chosen.
    pub repository: String,
}

/// Returns the mirrors of each upstream host of the lock, of the registry itself and, if upstream
/// must not be used, of every other host (`_default`), in the order in which clients try them.
///
/// Fails if an earlier mirror has another image by the same name, which clients would pull.
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
        for host in std::iter::once(image.registry.clone()).chain(aliases) {
            let usual = request
                .mapping
                .own_destination(&request.mapping.host_path(&host))
                .repository;
            let of_host = hosts.entry(host).or_default();
            add(of_host, image, &request.mapping.destinations(image), &usual);
        }
    }
    for (host, of_host) in &hosts {
        unambiguous(host, of_host, request)?;
    }
    hosts.insert(target.registry.clone(), vec![plain("")]);
    if !request.upstream_fallback() {
        hosts.insert("_default".into(), vec![plain(&target.prefix)]);
    }
    Ok(hosts)
}

/// Adds the mirror that has `image`, unless there is one already. The one of the whole host is
/// tried first.
fn add(of_host: &mut Vec<HostMirror>, image: &ImageRef, places: &[Destination], usual: &str) {
    let prefixes = || {
        places
            .iter()
            .filter_map(|place| path_prefix(&place.repository, &image.repository))
    };
    if prefixes().any(|prefix| of_host.iter().any(|mirror| mirror.prefix == prefix)) {
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
        of_host.insert(if prefix == usual { 0 } else { of_host.len() }, mirror);
    }
}

/// Fails if the first mirror that has the name of an image of `host` has another image there.
fn unambiguous(
    host: &str,
    of_host: &[HostMirror],
    request: &RenderRequest<'_>,
) -> Result<(), RenderError> {
    if of_host.len() < 2 {
        return Ok(());
    }
    let mut places: BTreeMap<String, (&ImageRef, &landfall_model::Digest)> = BTreeMap::new();
    for image in &request.lock.images {
        for place in request.mapping.destinations(&image.name) {
            let tag = image.name.tag_or_latest().unwrap_or_default();
            places.insert(
                format!("{}:{tag}", place.repository),
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
        let asked = of_host.iter().map(|mirror| match mirror.prefix.as_str() {
            "" => format!("{}:{tag}", image.name.repository),
            prefix => format!("{prefix}/{}:{tag}", image.name.repository),
        });
        let first = asked
            .into_iter()
            .find_map(|place| Some((place.clone(), *places.get(&place)?)));
        if let Some((place, (other, digest))) = first
            && *digest != image.digest
        {
            return Err(RenderError::Refused(format!(
                "{} would be pulled from {place}, which is {other}; give {other} its own path in \
                 the site, under registry.paths",
                image.name
            )));
        }
    }
    Ok(())
}
