//! The site document.

use super::name_check;
use super::platforms::{RequiredNames, SiteCluster};
use super::proxy::SiteProxy;
use super::registry::RegistrySite;
use super::signers::SiteSigners;
use super::upstream::SiteUpstream;
use crate::document::{self, Diagnostic, read_text_input};
use crate::{Consumer, DestinationMap, DestinationRules, TargetRegistry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A place where landfall or its users run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Site {
    /// `landfall/v1`.
    pub api_version: SiteApiVersion,
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
    pub proxy: Option<SiteProxy>,
    /// Private hosts that answers of public hosts may lead to, by redirects, token realms and URLs
    /// in indexes: names, addresses and ranges, as in NO_PROXY.
    #[serde(default)]
    pub private_targets: Vec<String>,
    /// Who may sign bundles: a file of allowed signers (OpenSSH format), or such a file and how
    /// many must sign.
    #[serde(default)]
    pub signers: Option<SiteSigners>,
    /// Where pushes write down what they left, and which bundle of a series was the last; relative
    /// to the site file.
    #[serde(default)]
    pub receipt: Option<PathBuf>,
    /// Who will ask the registry: each adds the destinations that it will ask for.
    #[serde(default)]
    pub consumers: Vec<Consumer>,
    /// The clusters that configuration is rendered for, a folder each.
    #[serde(default)]
    pub clusters: Vec<SiteCluster>,
    /// Names that must resolve, and that certificates must have.
    #[serde(default)]
    pub names: Vec<RequiredNames>,
    /// Per-host transport on the connected side, by host name.
    #[serde(default)]
    pub upstreams: BTreeMap<String, SiteUpstream>,
    /// Folder of the site file: what relative paths in it start from.
    #[serde(skip)]
    #[schemars(skip)]
    pub folder: PathBuf,
    /// The site file, as the user named it.
    #[serde(skip)]
    #[schemars(skip)]
    pub file: PathBuf,
}

/// The version of landfall's documents.
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
    /// A site.
    #[default]
    Site,
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
        let (name, text) = (
            file.display().to_string(),
            text.trim_start_matches('\u{feff}'),
        );
        let mut site: Site = document::read(&name, text)?;
        name_check::check(&site.names, &name, text)?;
        if let Some(fault) = document::control_characters(&name, text, &[])
            .into_iter()
            .next()
        {
            return Err(SiteError::Document(Box::new(fault)));
        }
        site.folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        site.file = file.into();
        Ok(site)
    }

    /// Reads the site at `path`.
    ///
    /// # Errors
    /// As [`Site::parse`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Site, SiteError> {
        let text = read_text_input(path).map_err(|source| SiteError::Open {
            path: path.into(),
            source,
        })?;
        Site::parse(path, &text)
    }

    /// What the site says about destinations.
    pub fn destination_rules(&self) -> DestinationRules {
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

    /// A key of this site for a message, as in `registry.ca of site.yaml`.
    pub fn key(&self, key: &str) -> String {
        match self.file.as_os_str().is_empty() {
            true => format!("{key} of the site"),
            false => format!("{key} of {}", self.file.display()),
        }
    }

    /// The key of this site that names the certificate or key at `path`, for a message.
    pub fn trust_key(&self, path: &Path) -> Option<String> {
        let registry = self.registry.iter().flat_map(|registry| {
            let paths = [&registry.ca, &registry.client_cert, &registry.client_key];
            let keys = ["registry.ca", "registry.clientCert", "registry.clientKey"];
            keys.map(str::to_owned).into_iter().zip(paths)
        });
        let upstreams = self.upstreams.iter();
        let upstreams =
            upstreams.map(|(host, upstream)| (format!("upstreams.{host}.ca"), &upstream.ca));
        let proxy = self
            .proxy
            .iter()
            .map(|proxy| ("proxy.ca".to_owned(), &proxy.ca));
        let mut all = registry.chain(upstreams).chain(proxy);
        let is_it = |named: &Option<PathBuf>| {
            named
                .as_ref()
                .is_some_and(|named| self.resolve(named) == path)
        };
        all.find(|(_, named)| is_it(named))
            .map(|(key, _)| self.key(&key))
    }

    /// A path written in the site file, from where it counts.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

/// The mapping to `target` by the rules of `site`, where there is one.
pub fn destination_map(target: TargetRegistry, site: Option<&Site>) -> DestinationMap {
    DestinationMap::new(
        target,
        &site.map(Site::destination_rules).unwrap_or_default(),
    )
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
consumers: [kubermatic, containerd]
clusters: [{name: mycluster, namespace: org-example}]
names: ["*.seed.example.com", {dns: [a.example.com], certificate: [b.example.com]}]
upstreams:
  quay.io: {mirror: "http://127.0.0.1:5001/quay", maxConcurrent: 8}
"#;

    #[test]
    fn no_text_holds_a_control_character() {
        let text = "apiVersion: landfall/v1\nkind: Site\nproxy:\n  noProxy:\n    \
                    installation: [\"10.0.0.0/8\", \"x\\nExecStartPre=/bin/sh\"]\n";
        let told = Site::parse(Path::new("site.yaml"), text)
            .unwrap_err()
            .to_string();
        assert!(
            told.starts_with("site.yaml:5:34: error: `proxy.noProxy.installation` contains"),
            "{told}"
        );
        assert!(
            told.contains("a line feed (U+000A)") && told.lines().count() == 6,
            "{told}"
        );
    }

    #[test]
    fn the_designs_example_reads() {
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
        assert_eq!(names[0], (&["*.seed.example.com".to_owned()][..], &[][..]));
        assert_eq!(names[1].1, ["b.example.com"]);
        assert_eq!(
            site.resolve(Path::new("certs/ca.crt")),
            Path::new("conf/certs/ca.crt")
        );
    }
}
