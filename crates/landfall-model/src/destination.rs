//! Maps source names to their destinations at the target registry, by the rules of the site.

use super::consumer::{Consumer, SitePaths};
use super::name_pattern::{normal_name, normal_prefixes};
use super::redaction::{redact_urls, redact_userinfo};
use super::{Failure, ImageRef, extend_distinct, is_repository, split_port};
use std::fmt;
use std::str::FromStr;
use url::Url;

/// A registry with a path prefix: the value of `--to` and of `registry.address`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRegistry {
    /// The host, lower case, as in `host[:port]`.
    pub registry: String,
    /// The path before every destination; may be empty.
    pub prefix: String,
}

/// Whether a URL contains a user name or a password.
pub fn has_userinfo(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The URL `named` in a document at `base`. If the server differs only in its scheme, http instead
/// of https, it becomes https: a server behind a proxy may not know that clients use https.
pub fn keeping_https(base: &Url, mut named: Url) -> Url {
    let loses_https = base.scheme() == "https" && named.scheme() == "http";
    // `port` is `None` for the default port of either scheme; another port is another server
    let is_same_port = named.port() == base.port() || named.port() == base.port_or_known_default();
    if loses_https && named.host() == base.host() && is_same_port {
        // cannot fail: the URL has a host
        let _ = named.set_scheme("https");
    }
    named
}

impl FromStr for TargetRegistry {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (registry, prefix) = text.split_once('/').unwrap_or((text, ""));
        let prefix = prefix.trim_end_matches('/');
        // if the first component of a reference has neither a dot nor a port and is not
        // `localhost`, it is not a host but belongs to a repository of docker.io
        let host = format!("{registry}/x")
            .parse::<ImageRef>()
            .map(|reference| reference.registry);
        let is_host = host.is_ok_and(|host| host == registry.to_ascii_lowercase());
        let has_good_port = split_port(registry)
            .1
            .is_none_or(|port| port.parse::<u16>().is_ok());
        if text.contains("://")
            || !is_host
            || !has_good_port
            || !(prefix.is_empty() || is_repository(prefix))
        {
            return Err(Failure::usage(format!(
                "'{}' is not a registry: write HOST[:PORT][/PREFIX] without a scheme, as in \
                 172.20.0.2:5000/platform; a host has a dot or a port, and a prefix is in lower \
                 case",
                redact_userinfo(&redact_urls(text))
            )));
        }
        Ok(TargetRegistry {
            registry: registry.to_ascii_lowercase(),
            prefix: prefix.into(),
        })
    }
}

impl fmt::Display for TargetRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix.as_str() {
            "" => f.write_str(&self.registry),
            prefix => write!(f, "{}/{prefix}", self.registry),
        }
    }
}

/// A repository at the target registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{registry}/{repository}")]
pub struct Destination {
    /// The host of the target registry, as in `host[:port]`.
    pub registry: String,
    /// The repository at that registry, with the prefix of the target.
    pub repository: String,
}

/// The rules of a site for destinations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DestinationRules {
    /// Whether the source host is the first component of the path.
    pub keep_host: bool,
    /// Source prefixes with their destination paths, in any order.
    pub paths: Vec<(String, Vec<String>)>,
    /// The consumers of the registry: each adds the destinations that it requests.
    pub consumers: Vec<Consumer>,
}

/// The mapping from locked names to their destinations.
#[derive(Debug, Clone)]
pub struct DestinationMap {
    target: TargetRegistry,
    /// The rules of the site, with normal prefixes, the longest first.
    rules: DestinationRules,
}

impl DestinationMap {
    /// Maps to `target` without the rules of a site.
    pub fn to(target: TargetRegistry) -> DestinationMap {
        DestinationMap::new(target, DestinationRules::default())
    }

    /// Maps to `target` by `rules`.
    pub fn new(target: TargetRegistry, rules: DestinationRules) -> DestinationMap {
        let paths = rules.paths.iter();
        let mut paths: Vec<(String, Vec<String>)> = paths
            .flat_map(|(prefix, to)| {
                let prefixes = normal_prefixes(prefix).into_iter();
                prefixes.map(|prefix| (prefix, to.clone()))
            })
            .collect();
        paths.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        let rules = DestinationRules { paths, ..rules };
        DestinationMap { target, rules }
    }

    /// The target of all destinations.
    pub fn target(&self) -> &TargetRegistry {
        &self.target
    }

    /// Returns the destinations of the image `name`. The first one is written into references.
    pub fn destinations(&self, name: &ImageRef) -> Vec<Destination> {
        let mut paths = self.site_paths(name);
        for consumer in &self.rules.consumers {
            extend_distinct(&mut paths, self.consumer_paths(*consumer, name));
        }
        paths
            .iter()
            .map(|path| self.own_destination(path))
            .collect()
    }

    /// Returns the destinations that `consumer` requests for the image `name`.
    pub fn consumer_destinations(&self, consumer: Consumer, name: &ImageRef) -> Vec<Destination> {
        self.consumer_paths(consumer, name)
            .iter()
            .map(|path| self.own_destination(path))
            .collect()
    }

    /// Returns the path to which images of `host` are mapped unless a longer source prefix matches
    /// them. The path is relative to the prefix of the target.
    pub fn host_path(&self, host: &str) -> String {
        let mut paths = self.rules.paths.iter();
        let rule = paths
            .find(|(prefix, _)| prefix == host)
            .and_then(|(_, to)| to.first());
        match rule {
            Some(path) => path.trim_matches('/').to_owned(),
            None if self.rules.keep_host => host_component(host),
            None => String::new(),
        }
    }

    fn consumer_paths(&self, consumer: Consumer, name: &ImageRef) -> Vec<String> {
        let site_paths = self.site_paths(name);
        consumer.requested_paths(
            name,
            &SitePaths {
                image: &site_paths,
                host: &|host| self.host_path(host),
            },
        )
    }

    /// The paths of `name` by the rules of the site, below the prefix of the target.
    fn site_paths(&self, name: &ImageRef) -> Vec<String> {
        let full = normal_name(name);
        for (prefix, to) in &self.rules.paths {
            if let Some(rest) = strip_components(&full, prefix) {
                return to.iter().map(|path| join(path, rest)).collect();
            }
        }
        vec![join(&self.host_path(&name.registry), &name.repository)]
    }

    /// Returns the destination with the repository `path` below the prefix of the target. The rules
    /// of the site are not applied: `path` is mapped already, or is a repository of landfall's own.
    pub fn own_destination(&self, path: &str) -> Destination {
        Destination {
            registry: self.target.registry.clone(),
            repository: join(&self.target.prefix, path),
        }
    }
}

/// Returns a host as a path component: `localhost:5001` becomes `localhost_5001`, and `[::1]:5001`
/// becomes `0__1_5001`.
pub fn host_component(host: &str) -> String {
    // a component cannot begin or end with `_`, so a zero is added before a `::` that begins the
    // address, and after a `::` that ends it
    host.replace("[::", "[0::")
        .replace("::]", "::0]")
        .trim_start_matches('[')
        .replace("]:", "_")
        .replace([':'], "_")
        .replace(']', "")
}

/// Strips `prefix` and the slash after it. Returns `None` if `name` does not begin with `prefix`,
/// or if `prefix` ends inside a path component of `name`.
fn strip_components<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = name.strip_prefix(prefix)?;
    if rest.is_empty() {
        Some("")
    } else {
        rest.strip_prefix('/')
    }
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

    fn rules(keep_host: bool, paths: &[(&str, &[&str])]) -> DestinationRules {
        let paths = paths.iter().map(|(prefix, to)| {
            (
                prefix.to_string(),
                to.iter().map(ToString::to_string).collect(),
            )
        });
        DestinationRules {
            keep_host,
            paths: paths.collect(),
            consumers: Vec::new(),
        }
    }

    fn map(to: &str, rules: Option<&DestinationRules>, name: &str) -> Vec<String> {
        let mapping = DestinationMap::new(to.parse().unwrap(), rules.cloned().unwrap_or_default());
        mapping
            .destinations(&name.parse().unwrap())
            .iter()
            .map(Destination::to_string)
            .collect()
    }

    #[test]
    fn the_host_is_dropped_and_paths_replace_prefixes() {
        let site = rules(
            false,
            &[
                ("k8s.gcr.io", &["kubernetes"]),
                ("gcr.io/google_containers", &["kubernetes"]),
                (
                    "registry.k8s.io/coredns/coredns",
                    &["coredns/coredns", "coredns"],
                ),
            ],
        );
        let to = "172.20.0.2:5000";
        assert_eq!(
            map(to, None, "quay.io/prometheus/node-exporter:v1"),
            ["172.20.0.2:5000/prometheus/node-exporter"]
        );
        assert_eq!(
            map(to, Some(&site), "k8s.gcr.io/pause:3.1"),
            ["172.20.0.2:5000/kubernetes/pause"]
        );
        assert_eq!(
            map(
                to,
                Some(&site),
                "gcr.io/google_containers/hyperkube-amd64:v1"
            ),
            ["172.20.0.2:5000/kubernetes/hyperkube-amd64"]
        );
        assert_eq!(
            map(to, Some(&site), "gcr.io/google_containers2/x:1"),
            ["172.20.0.2:5000/google_containers2/x"]
        );
        assert_eq!(
            map(
                "172.20.0.2:5000/pre",
                Some(&site),
                "registry.k8s.io/coredns/coredns:v1"
            ),
            [
                "172.20.0.2:5000/pre/coredns/coredns",
                "172.20.0.2:5000/pre/coredns"
            ]
        );
    }

    #[test]
    fn keep_host_puts_host_and_port_into_the_first_component() {
        let site = rules(true, &[]);
        assert_eq!(
            map("r:5000", Some(&site), "localhost:5001/a/b:1"),
            ["r:5000/localhost_5001/a/b"]
        );
        assert_eq!(
            map("r:5000", Some(&site), "nginx:1"),
            ["r:5000/docker.io/library/nginx"]
        );
        for (host, component) in [
            ("[fd00::5]:5000", "fd00__5_5000"),
            ("[1:2:3:4:5:6:7:8]", "1_2_3_4_5_6_7_8"),
            ("[::1]:5000", "0__1_5000"),
            ("[::1]", "0__1"),
            ("[fd00::]", "fd00__0"),
            ("[fd00::]:5000", "fd00__0_5000"),
            ("[::]:5000", "0__0_5000"),
            ("[::ffff:10.0.0.1]:5000", "0__ffff_10.0.0.1_5000"),
        ] {
            assert_eq!(host_component(host), component);
            assert!(is_repository(component), "{component}");
        }
    }

    #[test]
    fn each_consumer_adds_the_names_that_it_requests() {
        let coredns = "registry.k8s.io/coredns/coredns:v1";
        let old = "gcr.io/google_containers/pause:3.1";
        let moved: &[(&str, &[&str])] = &[
            ("gcr.io/google_containers", &["kubernetes"]),
            ("quay.io", &["quay"]),
        ];
        for (consumer, keep_host, image, added) in [
            (Consumer::Kubeadm, false, coredns, &["coredns"][..]),
            (
                Consumer::Kubeadm,
                true,
                coredns,
                &["registry.k8s.io/coredns"],
            ),
            (Consumer::Kubeadm, false, old, &[]),
            (
                Consumer::Kubeone,
                true,
                coredns,
                &["coredns/coredns", "coredns"],
            ),
            (Consumer::Kubermatic, true, coredns, &["coredns/coredns"]),
            (Consumer::Kubermatic, false, "quay.io/a/b:1", &["a/b"]),
            // a mirror can add a path before the name, but cannot shorten the name
            (Consumer::Containerd, true, coredns, &[]),
            (Consumer::Containerd, false, "quay.io/a/b:1", &[]),
            (
                Consumer::Containerd,
                false,
                old,
                &["google_containers/pause"],
            ),
            (Consumer::Crio, false, old, &[]),
            (Consumer::Docker, true, "nginx:1", &["library/nginx"]),
            (Consumer::Docker, true, coredns, &[]),
        ] {
            let without = rules(keep_host, moved);
            let with = DestinationRules {
                consumers: vec![consumer],
                ..without.clone()
            };
            let to = "r:5000/p";
            let first = map("r:5000/p", Some(&without), image);
            let all = map(to, Some(&with), image);
            assert_eq!(all[..first.len()], first, "{consumer}");
            let expected: Vec<String> = added.iter().map(|path| format!("{to}/{path}")).collect();
            assert_eq!(all[first.len()..], expected, "{consumer} {image}");
            let mapping = DestinationMap::new(to.parse().unwrap(), with);
            let own = mapping.consumer_destinations(consumer, &image.parse().unwrap());
            assert!(
                own.iter().all(|place| all.contains(&place.to_string())),
                "{consumer} {image}"
            );
        }
    }

    #[test]
    fn targets_are_registries_with_an_optional_prefix() {
        for good in [
            "172.20.0.2:5000",
            "localhost:5000/a/b",
            "[::1]:5000",
            "registry.example.com",
            "harbor:443/x",
        ] {
            assert_eq!(
                good.parse::<TargetRegistry>().map(|t| t.to_string()),
                Ok(good.into())
            );
        }
        for bad in [
            "",
            "http://r:5000",
            "r:5000/UPPER",
            "r:port",
            "r:99999",
            "harbor/x",
            "/x",
        ] {
            assert!(bad.parse::<TargetRegistry>().is_err(), "{bad}");
        }
    }
}
