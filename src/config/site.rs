//! The site document.

use crate::document::{self, Diagnostic};
use crate::model::{DestinationRules, Mapping, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// A place where landfall or its users run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Site {
    /// `landfall/v1`.
    pub api_version: ApiVersion,
    /// `Site`.
    pub kind: SiteKind,
    /// The private registry.
    #[serde(default)]
    pub registry: Option<RegistrySite>,
    /// Base URL of the file server; any URL that answers `/<host>/<path>`.
    #[serde(default)]
    pub files: Option<String>,
    /// The proxy for landfall's own traffic, in place of the environment's variables as a whole.
    #[serde(default)]
    pub proxy: Option<Proxy>,
    /// Who may sign bundles: a file of allowed signers (OpenSSH format), or such a file and how many must sign.
    #[serde(default)]
    pub signers: Option<Signers>,
    /// Where pushes write down what they left, and which bundle of a series was the last; relative to the site file.
    #[serde(default)]
    pub receipt: Option<PathBuf>,
    /// Per-host transport on the connected side, by host name.
    #[serde(default)]
    pub upstreams: BTreeMap<String, Upstream>,
    /// Folder of the site file: what relative paths in it start from.
    #[serde(skip)]
    #[schemars(skip)]
    pub folder: PathBuf,
}

/// The version of landfall's documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ApiVersion {
    /// The only version so far.
    #[default]
    #[serde(rename = "landfall/v1")]
    V1,
}

/// The `kind` of a site document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum SiteKind {
    /// A site.
    #[default]
    Site,
}

/// The private registry of a site.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RegistrySite {
    /// `host[:port][/prefix]`; the default of `--to`.
    pub address: String,
    /// Certificate authority in PEM form, added to the system's; relative to the site file.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Client certificate in PEM form.
    #[serde(default)]
    pub client_cert: Option<PathBuf>,
    /// Key of the client certificate in PEM form.
    #[serde(default)]
    pub client_key: Option<PathBuf>,
    /// Speak plain http, with credentials if there are any.
    #[serde(default, rename = "plainHTTP")]
    pub plain_http: bool,
    /// Accept any certificate. Warned about at every run.
    #[serde(default)]
    pub skip_verify: bool,
    /// Reach the registry through the proxy.
    #[serde(default)]
    pub via_proxy: bool,
    /// Where user name and password come from.
    #[serde(default)]
    pub credentials: Option<Credentials>,
    /// Source prefix -> destination path(s). The longest matching prefix wins, on whole components.
    #[serde(default)]
    pub paths: BTreeMap<String, Destinations>,
    /// Put the source host first in the destination path.
    #[serde(default)]
    pub keep_host: bool,
    /// What to do where the target refuses an index with missing children.
    #[serde(default)]
    pub index: IndexPolicy,
}

/// Who may sign bundles.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Signers {
    /// One of this file; its path is relative to the site file.
    File(PathBuf),
    /// Several of a file.
    AtLeast(SignersRule),
}

/// Who may sign bundles, and how many must.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SignersRule {
    /// File of allowed signers (OpenSSH format); relative to the site file.
    pub file: PathBuf,
    /// How many different signers of the file a bundle needs.
    pub at_least: NonZeroUsize,
}

impl Signers {
    /// The file of allowed signers, and how many of them must sign.
    pub fn rule(&self) -> (&Path, usize) {
        match self {
            Signers::File(file) => (file, 1),
            Signers::AtLeast(rule) => (&rule.file, rule.at_least.get()),
        }
    }
}

/// One destination path, several, or an entry with credentials of its own.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Destinations {
    /// One path.
    One(String),
    /// Several paths: all are pushed, the first is written into references.
    Many(Vec<String>),
    /// Path(s) with credentials of their own.
    Entry(PathEntry),
}

/// A destination with credentials of its own.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathEntry {
    /// The path(s).
    pub to: Vec<String>,
    /// Where user name and password for these paths come from.
    #[serde(default)]
    pub credentials: Option<Credentials>,
}

impl Destinations {
    /// The destination paths, in order.
    pub fn paths(&self) -> &[String] {
        match self {
            Destinations::One(path) => std::slice::from_ref(path),
            Destinations::Many(paths) => paths,
            Destinations::Entry(entry) => &entry.to,
        }
    }
}

/// What to do where a target refuses an index with missing children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IndexPolicy {
    /// Send the trimmed index, say so, and record old -> new.
    #[default]
    Trimmed,
    /// Refuse before the first blob.
    Exact,
}

/// Where a secret comes from. Never the secret itself.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Credentials {
    /// Environment variable that holds the user name.
    #[serde(default)]
    pub username_env: Option<String>,
    /// Environment variable that holds the password or token.
    #[serde(default)]
    pub password_env: Option<String>,
    /// File whose first line is `user:password`.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// A docker or podman auth file.
    #[serde(default)]
    pub auth_file: Option<PathBuf>,
}

/// A proxy for landfall's own traffic, and what nodes must not send through it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Proxy {
    /// Proxy URL for http targets.
    #[serde(default)]
    pub http: Option<String>,
    /// Proxy URL for https targets.
    #[serde(default)]
    pub https: Option<String>,
    /// Certificate authority added to the roots for every host reached through the proxy.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Where the proxy's user name and password come from.
    #[serde(default)]
    pub credentials: Option<Credentials>,
    /// Hosts that are reached directly.
    #[serde(default)]
    pub no_proxy: NoProxy,
}

/// What is reached directly, in two parts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NoProxy {
    /// Names, addresses and ranges for the whole installation.
    #[serde(default)]
    pub installation: Vec<String>,
    /// What each cluster adds.
    #[serde(default)]
    pub cluster: Option<ClusterNoProxy>,
}

/// The cluster's part of NO_PROXY.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ClusterNoProxy {
    /// Range of the pods' addresses.
    #[serde(default, rename = "podCIDR")]
    pub pod_cidr: Option<String>,
    /// Range of the services' addresses.
    #[serde(default, rename = "serviceCIDR")]
    pub service_cidr: Option<String>,
    /// DNS domain inside the cluster.
    #[serde(default)]
    pub domain: Option<String>,
    /// Host of the API server.
    #[serde(default)]
    pub control_plane_endpoint: Option<String>,
}

/// How one upstream host is reached.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Upstream {
    /// URL that the host's first requests go to instead, without changing a name in a lock.
    #[serde(default)]
    pub mirror: Option<String>,
    /// Requests in flight to this host.
    #[serde(default)]
    pub max_concurrent: Option<usize>,
    /// Certificate authority in PEM form, added to the system's.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Speak plain http.
    #[serde(default, rename = "plainHTTP")]
    pub plain_http: bool,
    /// Accept any certificate. Warned about at every run.
    #[serde(default)]
    pub skip_verify: bool,
    /// Reach the mirror through the proxy.
    #[serde(default)]
    pub via_proxy: bool,
    /// Where user name and password for this host come from.
    #[serde(default)]
    pub credentials: Option<Credentials>,
}

/// Why a site cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The file cannot be read.
    #[error("cannot read the site file {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// It is no site document.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
}

impl Site {
    /// Reads a site from text. `file` names it in messages; relative paths start from its folder.
    ///
    /// # Errors
    /// When the text is no site document.
    pub fn parse(file: &Path, text: &str) -> Result<Site, SiteError> {
        let mut site: Site =
            document::read(&file.display().to_string(), text.trim_start_matches('\u{feff}'))?;
        site.folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(site)
    }

    /// Reads the site at `path`.
    ///
    /// # Errors
    /// As [`Site::parse`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Site, SiteError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| SiteError::Open { path: path.into(), source })?;
        Site::parse(path, &text)
    }

    /// What the site says about destinations.
    pub fn destination_rules(&self) -> DestinationRules {
        let Some(registry) = &self.registry else { return DestinationRules::default() };
        let paths = registry.paths.iter().map(|(prefix, to)| (prefix.clone(), to.paths().to_vec())).collect();
        DestinationRules { keep_host: registry.keep_host, paths }
    }

    /// A path written in the site file, from where it counts.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

/// The mapping to `target` by the rules of `site`, where there is one.
pub fn mapping(target: Target, site: Option<&Site>) -> Mapping {
    Mapping::new(target, &site.map(Site::destination_rules).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

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
upstreams:
  quay.io: {mirror: "http://127.0.0.1:5001/quay", maxConcurrent: 8}
"#;

    #[test]
    fn the_designs_example_reads() {
        let site = Site::parse(Path::new("conf/site.yaml"), EXAMPLE).unwrap();
        let registry = site.registry.as_ref().unwrap();
        assert_eq!(registry.paths["registry.k8s.io/coredns/coredns"].paths(), ["coredns/coredns", "coredns"]);
        assert_eq!(registry.paths["quay.io/team"].paths(), ["team"]);
        assert_eq!(site.resolve(Path::new("certs/ca.crt")), Path::new("conf/certs/ca.crt"));
    }
}
