//! The site document (`site.yaml`), which describes one location: registry, proxy and clusters.
//! Both sides of the air gap use the same schema.

mod platforms;
mod registry;
mod tkg_import;

use self::platforms::{RequiredNames, check_required_names};
use self::registry::{RegistrySite, check_registry};
use crate::document::{
    self, Diagnostic, ReadAll, SignatureRule, SourceText, YamlNode, read_all, read_text_input,
};
use crate::{
    Consumer, DestinationMap, DestinationRules, Digest, Failure, TargetRegistry, has_scheme,
    is_dns_name, split_port, upstream_host,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

pub use self::platforms::SiteCluster;
pub use self::registry::{IndexPolicy, PathDestinations, ReferrerPolicy};
pub use self::tkg_import::{TkgSite, read_tkg_site};

/// The settings of one location: registry, file server, proxy and clusters.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Site {
    /// The version of the format: always `landfall/v1`.
    pub api_version: SiteApiVersion,
    /// The kind of the document: always `Site`.
    pub kind: SiteKind,
    /// The private registry, the default of `--to`.
    #[serde(default)]
    pub registry: Option<RegistrySite>,
    /// Base URL of the file server: any URL that serves `/<host>/<path>`.
    #[serde(default)]
    pub files: Option<String>,
    /// The proxy for landfall's own traffic. It replaces all proxy variables of the environment.
    #[serde(default)]
    pub proxy: Option<SiteProxy>,
    /// Private hosts to which responses of public hosts may lead, by redirects, token realms and
    /// URLs in indexes: names, addresses and ranges, as in NO_PROXY.
    #[serde(default)]
    pub private_targets: Vec<String>,
    /// The signers that may sign bundles: a file of allowed signers (OpenSSH format), and
    /// optionally how many of them must sign.
    #[serde(default)]
    pub signers: Option<SiteSigners>,
    /// The signatures that images, charts and files need before they enter this site, in addition
    /// to the rules of manifests. Paths are relative to the site file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<SignatureRule>,
    /// What `push` and `mirror` do with signatures and other referrers.
    #[serde(default)]
    pub referrers: ReferrerPolicy,
    /// The receipt in which pushes record what they delivered, and the last bundle of each series;
    /// relative to the site file.
    #[serde(default)]
    pub receipt: Option<PathBuf>,
    /// The log that records what commands did, as `--log` does; relative to the site file.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// The consumers of the registry: each adds the destinations that it requests.
    #[serde(default)]
    pub consumers: Vec<Consumer>,
    /// The clusters that configuration is rendered for, each in its own folder.
    #[serde(default)]
    pub clusters: Vec<SiteCluster>,
    /// Names that must resolve at the site, optionally with the names that certificates must
    /// contain.
    #[serde(default)]
    pub names: Vec<RequiredNames>,
    /// Per-host transport on the connected side, by host name.
    #[serde(default)]
    pub upstreams: BTreeMap<String, SiteUpstream>,
    /// The folder of the site file. Paths in the file are relative to this folder.
    #[serde(skip)]
    #[schemars(skip)]
    pub folder: PathBuf,
    /// The site file, as the user named it.
    #[serde(skip)]
    #[schemars(skip)]
    pub file: PathBuf,
    /// The digest of the site file, for the evidence log.
    #[serde(skip)]
    #[schemars(skip)]
    pub digest: Option<Digest>,
}

/// The `apiVersion` of a site document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum SiteApiVersion {
    /// The only version so far.
    #[default]
    #[serde(rename = "landfall/v1")]
    V1,
}

/// The `kind` of a site document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum SiteKind {
    /// The only kind of a site document.
    #[default]
    Site,
}

impl Site {
    /// Parses a site. `file` is its name in messages; paths in the site are relative to its folder.
    ///
    /// # Errors
    /// Fails if the text is not a valid site document.
    pub fn parse(file: &Path, text: &str) -> Result<Site, Failure> {
        let name = file.display().to_string();
        let digest = Digest::sha256(text.as_bytes());
        let text = text.trim_start_matches('\u{feff}');
        let ReadAll { value, faults, .. } =
            read_all::<Site>(&SourceText::yaml(name.clone(), text.to_owned()));
        let Some(mut site) = value.filter(|_| faults.is_empty()) else {
            return Err(faults.into());
        };
        if let Some(registry) = &site.registry {
            check_registry(registry, &name, text)?;
        }
        check_file_server(site.files.as_deref(), &name, text)?;
        check_required_names(&site.names, &name, text)?;
        site.upstreams = upstreams_by_host(site.upstreams, &name, text)?;
        // values are written into lines of rendered files: a line feed could add another line
        let errors = document::control_characters(&name, text, &[]);
        if !errors.is_empty() {
            return Err(errors.into());
        }
        site.folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        site.file = file.into();
        site.digest = Some(digest);
        Ok(site)
    }

    /// Loads the site at `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a valid site document.
    pub fn load(path: &Path) -> Result<Site, Failure> {
        let text = read_text_input(path).map_err(|error| {
            let path = path.display();
            let failure = Failure::usage(format!("cannot read the site file {path}: {error}"));
            if error.kind() != std::io::ErrorKind::NotFound {
                return failure;
            }
            failure.with_help(
                "--site or LANDFALL_SITE names it, relative to the current folder; `landfall init` \
                 writes a first one",
            )
        })?;
        Site::parse(path, &text)
    }

    /// Returns the rules of the site for destinations.
    pub(crate) fn destination_rules(&self) -> DestinationRules {
        let consumers = self.consumers.clone();
        let Some(registry) = &self.registry else {
            return DestinationRules {
                consumers,
                ..DestinationRules::default()
            };
        };
        let paths = registry
            .paths
            .iter()
            .map(|(prefix, to)| (prefix.clone(), to.paths().to_vec()))
            .collect();
        DestinationRules {
            keep_host: registry.keep_host,
            paths,
            consumers,
        }
    }

    /// Describes a key of this site for a message, as in `registry.ca of site.yaml`.
    pub fn key(&self, key: &str) -> String {
        if self.file.as_os_str().is_empty() {
            format!("{key} of the site")
        } else {
            format!("{key} of {}", self.file.display())
        }
    }

    /// Describes, for a message, the setting of this site that names the certificate or private key
    /// at `path`.
    pub fn trust_key(&self, path: &Path) -> Option<String> {
        let registry = self.registry.iter().flat_map(|registry| {
            let paths = [&registry.ca, &registry.client_cert, &registry.client_key];
            let keys = ["registry.ca", "registry.clientCert", "registry.clientKey"];
            keys.map(str::to_owned).into_iter().zip(paths)
        });
        let upstreams = self.upstreams.iter().flat_map(|(host, upstream)| {
            let paths = [&upstream.ca, &upstream.client_cert, &upstream.client_key];
            let keys = ["ca", "clientCert", "clientKey"];
            let keys = keys.map(|key| format!("upstreams.{host}.{key}"));
            keys.into_iter().zip(paths)
        });
        let proxy = self
            .proxy
            .iter()
            .map(|proxy| ("proxy.ca".to_owned(), &proxy.ca));
        let mut all = registry.chain(upstreams).chain(proxy);
        let (key, _) = all.find(|(_, named)| {
            named
                .as_ref()
                .is_some_and(|named| self.resolve(named) == path)
        })?;
        Some(self.key(&key))
    }

    /// The site as `cluster`, one of its clusters, sees it: with the cluster's part of NO_PROXY.
    #[must_use]
    pub fn of_cluster(&self, cluster: &SiteCluster) -> Site {
        let mut site = self.clone();
        if let Some(proxy) = &mut site.proxy {
            let common = proxy.no_proxy.cluster.take().unwrap_or_default();
            proxy.no_proxy.cluster = Some(cluster.no_proxy().or(common));
        }
        site
    }

    /// Returns the service network of the cluster with this name, or else of the only cluster, or
    /// else the one in the cluster's part of NO_PROXY.
    pub fn service_cidr(&self, cluster: Option<&str>) -> Option<&str> {
        let cluster = match (cluster, &self.clusters[..]) {
            (Some(name), clusters) => clusters.iter().find(|cluster| cluster.name == name),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        let of_proxy = || {
            let cluster = self.proxy.as_ref()?.no_proxy.cluster.as_ref()?;
            cluster.service_cidr.as_deref()
        };
        cluster
            .and_then(|cluster| cluster.service_cidr.as_deref())
            .or_else(of_proxy)
    }

    /// Resolves a path of the site file, relative to the folder of the file.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

/// Reports a file server without a scheme: its URL is written before paths, and most programs need
/// the scheme.
fn check_file_server(url: Option<&str>, file: &str, text: &str) -> Result<(), Box<Diagnostic>> {
    let Some(url) = url.filter(|url| !has_scheme(url)) else {
        return Ok(());
    };
    let root = YamlNode::parse(text).unwrap_or_default();
    let span = root.get("files").span();
    let message = format!("`files` is '{url}', which is not a URL");
    let help = "write the scheme too, as in http://172.20.0.2:8080";
    Err(Diagnostic::new(file, text, span, message, Some(help)))
}

/// Returns `upstreams` with the hosts in the form in which they are compared.
fn upstreams_by_host(
    upstreams: BTreeMap<String, SiteUpstream>,
    file: &str,
    text: &str,
) -> Result<BTreeMap<String, SiteUpstream>, Box<Diagnostic>> {
    let mut by_host = BTreeMap::new();
    for (written, upstream) in upstreams {
        let host = upstream_host(&written);
        let has_half = upstream.client_cert.is_some() != upstream.client_key.is_some();
        let is_twice = by_host.insert(host.clone(), upstream).is_some();
        let (message, help) = if !is_host(&host) {
            (
                format!("`{written}` in `upstreams` is not a host"),
                "write the host as in URLs, with its port unless that is 443: `quay.io`, \
                 `reg.example:5000`",
            )
        } else if is_twice {
            (
                format!("`upstreams` has {host} twice"),
                "write its settings below one key",
            )
        } else if has_half {
            let message = format!("{host} has only one of `clientCert` and `clientKey`");
            (message, "write both: the certificate and its private key")
        } else {
            continue;
        };
        let root = YamlNode::parse(text).unwrap_or_default();
        let span = root.get("upstreams").get(&written).span();
        return Err(Diagnostic::new(file, text, span, message, Some(help)));
    }
    Ok(by_host)
}

/// Whether `text` is `HOST` or `HOST:PORT`. A URL, a pattern or a name that is not ASCII never
/// equals the host of a request.
pub fn is_host(text: &str) -> bool {
    let (host, port) = split_port(text);
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_ipv6 = bare.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    (is_ipv6 || is_dns_name(host)) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// Returns the mapping to `target`, by the rules of `site` if one is given.
pub fn destination_map(target: TargetRegistry, site: Option<&Site>) -> DestinationMap {
    DestinationMap::new(
        target,
        site.map(Site::destination_rules).unwrap_or_default(),
    )
}

/// The proxy for landfall's own traffic, and the hosts that bypass it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteProxy {
    /// Proxy URL for http targets.
    pub http: Option<String>,
    /// Proxy URL for https targets.
    pub https: Option<String>,
    /// Certificate authority added to the roots for every host reached through the proxy.
    pub ca: Option<PathBuf>,
    /// The source of the proxy's user name and password.
    pub credentials: Option<SiteCredentials>,
    /// Hosts that are reached directly.
    pub no_proxy: SiteNoProxy,
}

/// The hosts that bypass the proxy: those of the installation and those of each cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteNoProxy {
    /// Names, addresses and ranges for the whole installation.
    pub installation: Vec<String>,
    /// The addresses and names that each cluster adds.
    pub cluster: Option<ClusterNoProxy>,
}

/// The part of NO_PROXY that depends on the cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ClusterNoProxy {
    /// Address range of the pods.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: Option<String>,
    /// Address range of the services.
    #[serde(rename = "serviceCIDR")]
    pub service_cidr: Option<String>,
    /// DNS domain inside the cluster.
    pub domain: Option<String>,
    /// Host of the API server.
    pub control_plane_endpoint: Option<String>,
}

impl ClusterNoProxy {
    /// These values, and those of `other` where this one has none.
    #[must_use]
    pub fn or(self, other: ClusterNoProxy) -> ClusterNoProxy {
        ClusterNoProxy {
            pod_cidr: self.pod_cidr.or(other.pod_cidr),
            service_cidr: self.service_cidr.or(other.service_cidr),
            domain: self.domain.or(other.domain),
            control_plane_endpoint: self.control_plane_endpoint.or(other.control_plane_endpoint),
        }
    }
}

// The sources of credentials in a site.

/// The source of credentials, never the credentials themselves.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteCredentials {
    /// Environment variable that holds the user name.
    pub username_env: Option<String>,
    /// Environment variable that holds the password or token.
    pub password_env: Option<String>,
    /// File whose first line is `user:password`.
    pub file: Option<PathBuf>,
    /// A docker or podman auth file; not for a proxy.
    pub auth_file: Option<PathBuf>,
}

/// The signers that may sign bundles.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SiteSigners {
    /// A file of allowed signers, one of which must sign; relative to the site file.
    File(PathBuf),
    /// A file of allowed signers, and how many of them must sign.
    AtLeast(SignersRule),
}

/// The signers that may sign bundles, and how many of them must sign.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SignersRule {
    /// File of allowed signers (OpenSSH format); relative to the site file.
    pub file: PathBuf,
    /// The number of different signers of the file that a bundle needs.
    pub at_least: NonZeroUsize,
}

impl SiteSigners {
    /// Returns the file of allowed signers, and how many of them must sign.
    pub fn rule(&self) -> (&Path, usize) {
        match self {
            SiteSigners::File(file) => (file, 1),
            SiteSigners::AtLeast(rule) => (&rule.file, rule.at_least.get()),
        }
    }
}

// The transport of upstream hosts on the connected side.

/// The transport of one upstream host.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteUpstream {
    /// URL of a mirror to which requests for this host are sent instead. Names in the lock do not
    /// change.
    pub mirror: Option<String>,
    /// Whether the mirror lists all tags of the host, as a full copy or a cache that forwards tag
    /// lists does. Otherwise landfall requests each tag that a signature may have.
    pub lists_all_tags: bool,
    /// The maximum number of requests at once to this host.
    pub max_concurrent: Option<usize>,
    /// Certificate authority in PEM form, added to the system's.
    pub ca: Option<PathBuf>,
    /// Client certificate in PEM form, for hosts that require one, such as RHEL's repositories.
    pub client_cert: Option<PathBuf>,
    /// Private key of the client certificate in PEM form.
    pub client_key: Option<PathBuf>,
    /// Use plain http for this host.
    #[serde(rename = "plainHTTP")]
    pub plain_http: bool,
    /// Accept any certificate. Every run warns about this.
    pub skip_verify: bool,
    /// Reach the mirror through the proxy.
    pub via_proxy: bool,
    /// The source of user name and password for this host.
    pub credentials: Option<SiteCredentials>,
}

/// Returns a site file with the common settings as comments. `registry` is the address of the
/// private registry, if known.
pub fn starter_site(registry: Option<&str>) -> String {
    let (mark, address) = match registry {
        Some(address) => ("", address),
        None => ("# ", "172.20.0.2:5000"),
    };
    format!(
        r#"# Written by `landfall init`: the private registry and how to reach it. Name it with --site, or LANDFALL_SITE.
# `landfall help site` explains every key; `landfall schema site` prints a JSON schema for editors.
# A site contains no secrets, only their sources.
apiVersion: landfall/v1
kind: Site

# The private registry: the default of --to. quay.io/team/app is pushed to ADDRESS/team/app, unless `paths` maps it.
{mark}registry:
{mark}  address: {address}
#   ca: certs/ca.crt                  # its certificate authority, PEM; or plainHTTP: true
#   credentials: {{usernameEnv: REG_USER, passwordEnv: REG_TOKEN}}   # else the auth files of docker and podman
#   paths:
#     k8s.gcr.io: kubernetes          # k8s.gcr.io/pause:3.1 -> ADDRESS/kubernetes/pause:3.1

# The file server, for the URLs of mirrored files: they become URL/<host>/<path>.
# files: http://172.20.0.2:8080

# The proxy of landfall's own traffic. It replaces that of the environment (HTTPS_PROXY, NO_PROXY).
# proxy:
#   https: http://proxy.example.com:3128
#   ca: certs/proxy-root.pem
#   noProxy: {{installation: [172.16.0.0/12, internal.example.com]}}

# Who may sign bundles: a file of OpenSSH allowed signers. Bundles of other signers are refused.
# signers: keys/allowed_signers

# The connected side: a pull-through cache that is used instead of a registry.
# upstreams:
#   quay.io: {{mirror: "https://cache.example.com/quay", maxConcurrent: 8}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::{Site, *};
    use std::path::Path;

    const EXAMPLE: &str = r#"
apiVersion: landfall/v1
kind: Site
registry:
  address: 172.20.0.2:5000
  ca: certs/ca.crt
  credentials: {usernameEnv: REG_USER, passwordEnv: REG_TOKEN}
  paths:
    k8s.gcr.io: kubernetes
    registry.k8s.io/coredns/coredns: [coredns/coredns, coredns]
    quay.io/team: {to: [team], credentials: {file: secret}}
files: http://172.20.0.2:8080
proxy:
  http: http://192.168.52.220:3128
  noProxy:
    installation: [172.16.0.0/12]
    cluster: {podCIDR: 100.96.0.0/11, serviceCIDR: 100.64.0.0/13, domain: cluster.local}
consumers: [kubermatic, containerd]
clusters: [{name: mycluster, namespace: org-example}]
names: ["*.seed.example.com", {dns: [a.example.com], certificate: [b.example.com]}]
upstreams:
  quay.io: {mirror: "http://127.0.0.1:5001/quay", maxConcurrent: 8}
"#;

    #[test]
    fn all_errors_of_a_site_are_reported_from_top_to_bottom() {
        let messages = |text: &str| {
            let failure = Site::parse(Path::new("s.yaml"), text).unwrap_err();
            let lines = failure.message.lines();
            let lines = lines.filter_map(|line| line.strip_prefix("s.yaml:"));
            lines.map(str::to_owned).collect::<Vec<_>>().join("; ")
        };
        for (text, expected) in [
            (
                "apiVersion: landfall/v2\nkind: Site\nregistry:\n  adress: 172.20.0.2:5000\n  \
                 plainHttp: true\nupstreams: {h.test: {miror: x, maxConcurrent: x}}\nprxy: 1\n",
                "1:13: error: `landfall/v2` is not allowed here; 4:3: error: unknown key `adress`; \
                 5:3: error: unknown key `plainHttp`; 6:22: error: unknown key `miror`; \
                 6:47: error: this should be a whole number; \
                 7:1: error: unknown key `prxy`",
            ),
            (
                "# a site\nkind: Site\nfiles: [a]\n",
                "2:1: error: the key `apiVersion` is missing here; \
                 3:8: error: this should be a string",
            ),
            (
                "apiVersion: landfall/v1\nkind: Site\nfiles: 172.20.0.2:8080\n",
                "3:8: error: `files` is '172.20.0.2:8080', which is not a URL",
            ),
            (
                "apiVersion: landfall/v1\nkind: Sitee\nregistry: {}\n",
                "2:7: error: `Sitee` is not allowed here; \
                 3:11: error: the key `address` is missing here",
            ),
        ] {
            assert_eq!(messages(text), expected, "{text}");
        }
    }

    #[test]
    fn a_value_in_place_of_a_mapping_is_shown_with_its_key() {
        for (text, help) in [
            ("registry: http://r:5000", "{address: http://r:5000}"),
            ("proxy: http://p:3128", "{https: http://p:3128}"),
            ("proxy: {noProxy: \"a,b\"}", "{installation: [HOST, …]}"),
            ("proxy: {noProxy: [a, b]}", "{installation: [HOST, …]}"),
            ("proxy:\n  noProxy:\n  - a", "{installation: [HOST, …]}"),
            ("clusters: [blue]", "{name: blue}"),
            ("upstreams: {h.test: http://c}", "{mirror: http://c}"),
        ] {
            let site = format!("apiVersion: landfall/v1\nkind: Site\n{text}\n");
            let message = Site::parse(Path::new("s.yaml"), &site)
                .unwrap_err()
                .to_string();
            let expected = format!("help: write `{help}`");
            assert!(message.contains(&expected), "{text}: {message}");
        }
    }

    #[test]
    fn a_password_in_the_site_is_not_shown() {
        for text in [
            "registry: {address: \"r:5000\", credentials: u:hush}",
            "registry: {address: \"r:5000\", credentials: {username: u, password: hush}}",
            "proxy:\n  credentials:\n    username: u\n    \"password\": 'hush, hush'",
            "upstreams: {h.test: {credentials: u:hush}}",
            "registry: {address: \"r:5000\", credentials: {auth: hush}}",
            "registry:\n  address: r:5000\n  credentials:\n    u:hush",
        ] {
            let site = format!("apiVersion: landfall/v1\nkind: Site\n{text}\n");
            let message = Site::parse(Path::new("s.yaml"), &site)
                .unwrap_err()
                .to_string();
            let help = "help: name their source, as in `{usernameEnv: ";
            assert!(
                message.contains(help) && !message.contains("hush"),
                "{text}: {message}"
            );
        }
    }

    #[test]
    fn control_characters_are_refused() {
        let text = "apiVersion: landfall/v1\nkind: Site\nproxy:\n  noProxy:\n    \
                installation: [\"10.0.0.0/8\", \"x\\nExecStartPre=/bin/sh\"]\n";
        let message = Site::parse(Path::new("site.yaml"), text)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("site.yaml:5:34: error: `proxy.noProxy.installation` contains"),
            "{message}"
        );
        assert!(
            message.contains("a line feed (U+000A)") && message.lines().count() == 6,
            "{message}"
        );
    }

    #[test]
    fn a_key_of_upstreams_is_a_host() {
        let parse = |key: &str| {
            let head = "apiVersion: landfall/v1\nkind: Site\nupstreams:\n";
            Site::parse(
                Path::new("site.yaml"),
                &format!("{head}  \"{key}\": {{}}\n"),
            )
        };
        for (key, host) in [
            ("Quay.io:443", "quay.io"),
            ("localhost:5000", "localhost:5000"),
            ("127.0.0.1:5000", "127.0.0.1:5000"),
            ("[fd00::1]:5000", "[fd00::1]:5000"),
        ] {
            let site = parse(key).unwrap();
            assert_eq!(site.upstreams.keys().collect::<Vec<_>>(), [host]);
        }
        for key in [
            "https://quay.io",
            "quay.io/team",
            "*.quay.io",
            "quay.io:",
            "quay.io:https",
            "fd00::1",
            "b\u{fc}cher.test",
        ] {
            let message = parse(key).unwrap_err().to_string();
            let words = format!("error: `{key}` in `upstreams` is not a host");
            assert!(message.contains(&words), "{message}");
        }
    }

    #[test]
    fn the_example_site_is_parsed() {
        let site = Site::parse(Path::new("conf/site.yaml"), EXAMPLE).unwrap();
        let registry = site.registry.as_ref().unwrap();
        assert_eq!(
            registry.paths["registry.k8s.io/coredns/coredns"].paths(),
            ["coredns/coredns", "coredns"]
        );
        assert_eq!(registry.paths["quay.io/team"].paths(), ["team"]);
        assert_eq!(
            site.destination_rules().consumers,
            [Consumer::Kubermatic, Consumer::Containerd]
        );
        assert_eq!(site.clusters[0].namespace.as_deref(), Some("org-example"));
        let names: Vec<_> = site
            .names
            .iter()
            .map(|names| (names.dns(), names.certificate()))
            .collect();
        assert_eq!(names[0].0, ["*.seed.example.com"]);
        assert_eq!(names[0].1, names[0].0, "without `certificate`");
        assert_eq!(names[1].1, ["b.example.com"]);
        assert_eq!(
            site.resolve(Path::new("certs/ca.crt")),
            Path::new("conf/certs/ca.crt")
        );
    }

    #[test]
    fn the_site_is_valid_as_written_and_with_all_settings_uncommented() {
        let load = |text: &str| Site::parse(Path::new("site.yaml"), text).unwrap();
        assert!(load(&starter_site(None)).registry.is_none());
        assert_eq!(
            load(&starter_site(Some("h.test/p")))
                .registry
                .unwrap()
                .address,
            "h.test/p"
        );
        let text = starter_site(None);
        // comments that are sentences are not settings
        let lines = text.lines().filter(|line| !line.ends_with('.'));
        let all: String = lines
            .map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n")
            .collect();
        let site = load(&all);
        let registry = site.registry.unwrap();
        assert!(
            registry.address == "172.20.0.2:5000" && registry.credentials.is_some(),
            "{all}"
        );
        assert!(
            site.proxy.is_some() && site.signers.is_some() && site.upstreams.len() == 1,
            "{all}"
        );
    }
}
