//! Where an item goes: source name -> destination name(s), by the site's rules.

use crate::lock::{File, Image, Lock};
use crate::model::{Digest, ImageRef};
use crate::site::Site;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A registry and a prefix to put before every path: the value of `--to` and of `registry.address`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `host[:port]`.
    pub registry: String,
    /// Path put before every result; may be empty.
    pub prefix: String,
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no registry: write HOST[:PORT][/PREFIX] without a scheme, as in 172.20.0.2:5000/platform; a host has a dot or a port"
)]
pub struct TargetError(String);

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (registry, prefix) = text.split_once('/').unwrap_or((text, ""));
        let prefix = prefix.trim_end_matches('/');
        // a name without dot and port would be read as a part of docker.io's path wherever it is written
        let host = format!("{registry}/x").parse::<ImageRef>().map(|reference| reference.registry);
        let host_ok = host.is_ok_and(|host| host == registry.to_ascii_lowercase());
        let port = registry.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map(|(_, port)| port);
        let port_ok = port.is_none_or(|port| port.parse::<u16>().is_ok());
        if text.contains("://") || !host_ok || !port_ok || !(prefix.is_empty() || is_path(prefix)) {
            return Err(TargetError(text.into()));
        }
        Ok(Target { registry: registry.to_ascii_lowercase(), prefix: prefix.into() })
    }
}

/// Whether it can be a repository's path, or the beginning of one.
pub(crate) fn is_path(path: &str) -> bool {
    format!("h.invalid/{path}").parse::<ImageRef>().is_ok_and(|reference| reference.repository == path)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix.as_str() {
            "" => f.write_str(&self.registry),
            prefix => write!(f, "{}/{prefix}", self.registry),
        }
    }
}

/// A repository at the target registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// `host[:port]`.
    pub registry: String,
    /// Repository path.
    pub repository: String,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)
    }
}

/// The rule that gives every locked name its destinations.
#[derive(Debug, Clone)]
pub struct Mapping {
    target: Target,
    keep_host: bool,
    /// Prefix -> destination paths, longest prefix first.
    paths: Vec<(String, Vec<String>)>,
}

/// Two digests that would get one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place} would be two things: {first} ({first_digest}) and {second} ({second_digest}); give one of \
     them a path of its own in the site file, under registry.paths:\n    {mend}"
)]
pub struct Collision {
    /// `registry/repository:tag` at the destination.
    pub place: String,
    /// One locked name.
    pub first: String,
    /// Its digest.
    pub first_digest: Digest,
    /// The other locked name.
    pub second: String,
    /// Its digest.
    pub second_digest: Digest,
    /// The line to add.
    pub mend: String,
}

impl Mapping {
    /// The mapping to `target` by the rules of `site`. The site's `paths` apply to any target.
    pub fn new(target: Target, site: Option<&Site>) -> Mapping {
        let registry = site.and_then(|site| site.registry.as_ref());
        let mut paths: Vec<(String, Vec<String>)> = registry
            .map(|registry| &registry.paths)
            .into_iter()
            .flatten()
            .map(|(prefix, to)| (normal_prefix(prefix), to.paths().to_vec()))
            .collect();
        paths.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Mapping { target, keep_host: registry.is_some_and(|registry| registry.keep_host), paths }
    }

    /// The registry that everything goes to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Where the image locked as `name` goes. The first destination is the one written into references.
    pub fn image(&self, name: &ImageRef) -> Vec<Destination> {
        let full = name.name();
        for (prefix, to) in &self.paths {
            if let Some(rest) = strip_components(&full, prefix) {
                let place = |path: &String| self.place(&join(path, rest));
                return to.iter().map(place).collect();
            }
        }
        vec![match self.keep_host {
            true => self.place(&join(&host_component(&name.registry), &name.repository)),
            false => self.place(&name.repository),
        }]
    }

    /// Where the file locked as `url` goes.
    pub fn file(&self, url: &str) -> Destination {
        self.place(&file_repository(url))
    }

    fn place(&self, path: &str) -> Destination {
        Destination { registry: self.target.registry.clone(), repository: join(&self.target.prefix, path) }
    }

    /// The first two items of `lock` that would get one name with two digests, if there are any.
    pub fn collision(&self, lock: &Lock) -> Option<Collision> {
        let images = lock.images.iter().flat_map(|image: &Image| {
            let tag = image.destination_tag();
            self.image(&image.name)
                .into_iter()
                .map(move |place| (format!("{place}:{tag}"), image.name.to_string(), &image.digest))
        });
        let files = lock.files.iter().map(|file: &File| {
            (format!("{}:{}", self.file(&file.name), file_tag(file)), file.name.clone(), &file.digest)
        });
        let mut taken: BTreeMap<String, (String, &Digest)> = BTreeMap::new();
        for (place, name, digest) in images.chain(files) {
            match taken.get(&place) {
                Some((first, first_digest)) if *first_digest != digest => {
                    let source = name.parse::<ImageRef>().map_or(name.clone(), |name| name.name());
                    return Some(Collision {
                        mend: format!("{source}: {}", source.replace(':', "_")),
                        place,
                        first: first.clone(),
                        first_digest: (*first_digest).clone(),
                        second: name,
                        second_digest: digest.clone(),
                    });
                }
                Some(_) => {}
                None => {
                    taken.insert(place, (name, digest));
                }
            }
        }
        None
    }
}

/// `files/<host>/<first 16 hex of the URL's SHA-256>`: the repository of a file's artifact.
pub fn file_repository(url: &str) -> String {
    let host = url::Url::parse(url).ok().and_then(|url| {
        let port = url.port().map(|port| format!("_{port}")).unwrap_or_default();
        url.host_str().map(|host| format!("{}{port}", host.trim_matches(['[', ']']).replace(':', "-")))
    });
    let host = host.unwrap_or_else(|| "unknown".into()).to_ascii_lowercase();
    format!("files/{host}/{}", Digest::sha256(url.as_bytes()).short(16))
}

/// The tag of a file's artifact: the first 12 hex digits of the file's digest.
pub fn file_tag(file: &File) -> String {
    file.digest.short(12).to_owned()
}

/// A host as a path component: `localhost:5001` becomes `localhost_5001`.
pub(crate) fn host_component(host: &str) -> String {
    host.trim_start_matches('[').replace("]:", "_").replace([':'], "_").replace(']', "")
}

/// A prefix as locked names have it: the host in lower case, `index.docker.io` as `docker.io`.
fn normal_prefix(prefix: &str) -> String {
    let prefix = prefix.trim_end_matches('/');
    let (host, path) = prefix.split_once('/').map_or((prefix, None), |(host, path)| (host, Some(path)));
    let host = host.to_ascii_lowercase();
    let host = if host == "index.docker.io" { "docker.io".into() } else { host };
    path.map_or(host.clone(), |path| format!("{host}/{path}"))
}

fn strip_components<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = name.strip_prefix(prefix)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}

fn join(left: &str, right: &str) -> String {
    match (left.trim_matches('/'), right.trim_matches('/')) {
        ("", right) => right.into(),
        (left, "") => left.into(),
        (left, right) => format!("{left}/{right}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn site(registry: &str) -> Site {
        let text =
            format!("apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: 172.20.0.2:5000\n{registry}");
        Site::parse(Path::new("site.yaml"), &text).unwrap()
    }

    fn map(to: &str, site: Option<&Site>, name: &str) -> Vec<String> {
        let mapping = Mapping::new(to.parse().unwrap(), site);
        mapping.image(&name.parse().unwrap()).iter().map(Destination::to_string).collect()
    }

    #[test]
    fn the_host_is_dropped_and_paths_replace_prefixes() {
        let site = site(
            "  paths:\n    k8s.gcr.io: kubernetes\n    gcr.io/google_containers: kubernetes\n    \
             registry.k8s.io/coredns/coredns: [coredns/coredns, coredns]\n",
        );
        let to = "172.20.0.2:5000";
        assert_eq!(
            map(to, None, "quay.io/prometheus/node-exporter:v1"),
            ["172.20.0.2:5000/prometheus/node-exporter"]
        );
        assert_eq!(map(to, Some(&site), "k8s.gcr.io/pause:3.1"), ["172.20.0.2:5000/kubernetes/pause"]);
        assert_eq!(
            map(to, Some(&site), "gcr.io/google_containers/hyperkube-amd64:v1"),
            ["172.20.0.2:5000/kubernetes/hyperkube-amd64"]
        );
        assert_eq!(
            map(to, Some(&site), "gcr.io/google_containers2/x:1"),
            ["172.20.0.2:5000/google_containers2/x"]
        );
        assert_eq!(
            map("172.20.0.2:5000/pre", Some(&site), "registry.k8s.io/coredns/coredns:v1"),
            ["172.20.0.2:5000/pre/coredns/coredns", "172.20.0.2:5000/pre/coredns"]
        );
    }

    #[test]
    fn keep_host_turns_a_port_into_a_component() {
        let site = site("  keepHost: true\n");
        assert_eq!(map("r:5000", Some(&site), "localhost:5001/a/b:1"), ["r:5000/localhost_5001/a/b"]);
        assert_eq!(map("r:5000", Some(&site), "nginx:1"), ["r:5000/docker.io/library/nginx"]);
    }

    #[test]
    fn targets_are_registries_with_an_optional_prefix() {
        for good in
            ["172.20.0.2:5000", "localhost:5000/a/b", "[::1]:5000", "registry.example.com", "harbor:443/x"]
        {
            assert_eq!(good.parse::<Target>().map(|t| t.to_string()), Ok(good.into()));
        }
        for bad in ["", "http://r:5000", "r:5000/UPPER", "r:port", "r:99999", "harbor/x", "/x"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_files_repository_follows_from_its_url() {
        let repository = file_repository("https://dl.k8s.io/x");
        assert!(repository.starts_with("files/dl.k8s.io/") && repository.len() == 16 + 16);
        assert!(file_repository("http://[::1]:8080/x").starts_with("files/--1_8080/"));
    }
}
