//! The interface of a platform: its command line, its input and its output.

use crate::kubernetes_objects::{OBJECT_NAME, is_object_name, is_part};
use crate::node_registry::{NodeRegistry, names_host};
use crate::proxy::{self, NoProxyDialect, NoProxyEntries, NodeProxy};
use crate::rendered_file::RenderedFile;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_http::bypasses_proxy;
use landfall_item::lockfile::Lock;
use landfall_model::config::{Site, SiteCluster};
use landfall_model::document::nearest;
use landfall_model::report::{ReportItem, shell_word};
use landfall_model::{
    Consumer, DestinationMap, Failure, ImageRef, Limits, ReferenceError, TargetRegistry,
};
use landfall_rewrite::audit::FileFinding;
use serde::Serialize;
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// A platform that `landfall render` writes configuration for.
#[derive(Debug)]
pub struct RenderPlatform {
    /// The name on the command line.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// What the platform writes, in one line.
    pub about: &'static str,
    /// The paragraphs after `about` in the output of `--help`.
    pub details: &'static str,
    /// The files that the platform reads besides the lock.
    pub inputs: &'static [PlatformInput],
    /// The settings that `--set` accepts.
    pub settings: &'static [PlatformSetting],
    /// The consumer of the registry that this configuration sets up. Every locked image must have
    /// the destinations from which this consumer pulls.
    pub consumer: Option<Consumer>,
    /// Whether the platform reads the lock.
    pub reads_lock: bool,
    /// The form of the output.
    pub writes: OutputForm,
    /// Whether the platform needs the address of a registry. A platform that does not need it
    /// ignores [`RenderRequest::mapping`].
    pub needs_registry: bool,
    /// Whether a platform that reads the lock also works without one.
    pub works_without_lock: bool,
    /// Whether the platform can configure only the proxy, if the site has one and no registry is
    /// known. [`RenderRequest::target`] is then `None` and the lock is empty.
    pub has_proxy_part: bool,
    /// Renders the configuration. Fails if an input cannot be read, or the inputs do not allow a
    /// configuration.
    pub render: fn(&RenderRequest<'_>) -> Result<RenderedConfig, Failure>,
}

impl RenderPlatform {
    /// A platform that `render` renders, without a name. It reads the lock, needs a registry and
    /// writes YAML files.
    pub(crate) const fn new(
        render: fn(&RenderRequest<'_>) -> Result<RenderedConfig, Failure>,
    ) -> RenderPlatform {
        RenderPlatform {
            name: "",
            aliases: &[],
            about: "",
            details: "",
            inputs: &[],
            settings: &[],
            consumer: None,
            reads_lock: true,
            writes: OutputForm::Files { not_into: None },
            needs_registry: true,
            works_without_lock: false,
            has_proxy_part: false,
            render,
        }
    }
}

/// The form of the output of a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputForm {
    /// One text, to a file or to stdout.
    Text {
        /// The help of `--out`, which names the file.
        out: &'static str,
    },
    /// Several files in the folder of `--out`.
    Files {
        /// Why `--into` is refused, or `None` if the files are YAML.
        not_into: Option<&'static str>,
    },
}

impl OutputForm {
    /// Why `--into` is refused, or `None` if it is allowed.
    pub fn not_into(self) -> Option<&'static str> {
        match self {
            OutputForm::Text { .. } => Some("this platform writes one text; write it with -o FILE"),
            OutputForm::Files { not_into } => not_into,
        }
    }
}

/// Files that a platform reads: arguments of the command line, or values of a repeatable flag.
#[derive(Debug)]
pub struct PlatformInput {
    /// The name of the input and of its flag.
    pub name: &'static str,
    /// Whether the files are arguments or values of a flag.
    pub flag: InputFlag,
    /// The name of a value in the help.
    pub value_name: &'static str,
    /// The help of the flag.
    pub help: &'static str,
}

/// How the command line names the files of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFlag {
    /// As arguments, at least one.
    Arguments,
    /// By a flag with this short form.
    Short(char),
    /// By a flag without a short form.
    Long,
}

/// A key of an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverlayKey {
    /// The path of the key, as in `helm --set`.
    pub path: String,
    /// The value in the charts, or in the user's values.
    pub from: String,
    /// The value in the overlay.
    pub to: String,
    /// Whether the value is a list. Helm replaces lists as a whole, so the overlay contains all of
    /// it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub list: bool,
}

/// The details of an overlay, for the report.
#[derive(Debug)]
pub struct OverlayDetails {
    /// The keys that the overlay sets.
    pub keys: Vec<OverlayKey>,
    /// References that the lock lacks.
    pub missing: Vec<FileFinding>,
    /// Possible references.
    pub undecided: Vec<FileFinding>,
    /// The values.
    pub values: Mapping,
}

/// Rendered configuration, with its notes and its part of the report.
#[derive(Debug, Default)]
pub struct RenderedConfig {
    /// The text or the files of the configuration.
    pub output: RenderedOutput,
    /// The changes that the configuration makes, one line each; shown if it is written to a file.
    pub changes: Vec<String>,
    /// Notes for the user, one line each.
    pub notes: Vec<String>,
    /// The items of the report.
    pub items: Vec<ReportItem>,
    /// The text for the report, if it is shorter than the output.
    pub text: Option<String>,
    /// The details of an overlay of Helm values.
    pub overlay: Option<OverlayDetails>,
    /// Why the configuration is useless, if it is. The run then fails.
    pub failure: Option<&'static str>,
}

impl RenderedConfig {
    /// Files, and notes for the user.
    pub(super) fn of_files(files: Vec<RenderedFile>, notes: Vec<String>) -> RenderedConfig {
        RenderedConfig {
            output: RenderedOutput::Files(files),
            notes,
            ..RenderedConfig::default()
        }
    }

    /// A text, and notes for the user.
    pub(super) fn of_text(text: String, notes: Vec<String>) -> RenderedConfig {
        RenderedConfig {
            output: RenderedOutput::Text(text),
            notes,
            ..RenderedConfig::default()
        }
    }
}

/// The output of a platform.
#[derive(Debug)]
pub enum RenderedOutput {
    /// A single text, to a file or to stdout.
    Text(String),
    /// Files, each with its path in the folder of `--out`.
    Files(Vec<RenderedFile>),
}

impl Default for RenderedOutput {
    fn default() -> RenderedOutput {
        RenderedOutput::Files(Vec::new())
    }
}

// The input of a platform.

/// The input from which a platform renders configuration.
#[derive(Debug, Clone)]
pub struct RenderRequest<'r> {
    /// The lock whose items are at the registry.
    pub lock: &'r Lock,
    /// The destinations of the items.
    pub mapping: &'r DestinationMap,
    /// The registry of the mapping, or `None` if no registry is known and the platform needs none.
    pub target: Option<&'r TargetRegistry>,
    /// The documents in the file of `--into`; empty without it.
    pub existing: &'r [Value],
    /// The site, if there is one.
    pub site: Option<&'r Site>,
    /// The hosts that `--plain-http` names.
    pub plain_http: &'r [String],
    /// Returns a variable of the environment.
    pub environment: fn(&str) -> Option<String>,
    /// The date of today, as `YYYY-MM-DD`.
    pub today: &'r str,
    /// The limits for files that are read.
    pub limits: &'r Limits,
    /// The files that the user named, by the names of the platform's inputs.
    pub inputs: &'r BTreeMap<&'static str, Vec<PathBuf>>,
    /// The settings that the user gave with `--set`.
    pub settings: PlatformSettings,
}

impl<'r> RenderRequest<'r> {
    /// Returns the files of the input `name`.
    pub fn paths(&self, name: &str) -> &[PathBuf] {
        self.inputs.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the names of the locked images.
    pub fn images(&self) -> impl Iterator<Item = &'r ImageRef> {
        self.lock.images.iter().map(|image| &image.name)
    }

    /// Returns the locked image that the user named with the setting `key`, if the setting is
    /// given.
    ///
    /// # Errors
    /// If the value is not the name of a locked image.
    pub fn named_image(&self, key: &str) -> Result<Option<&'r ImageRef>, Failure> {
        let Some(named) = self.settings.get(key) else {
            return Ok(None);
        };
        let wrong = |why: String| wrong_value(key, named, why);
        let image: ImageRef = named
            .parse()
            .map_err(|error: ReferenceError| wrong(error.to_string()))?;
        let locked = self.images().find(|locked| **locked == image);
        match locked {
            Some(locked) => Ok(Some(locked)),
            None => Err(wrong("the lock has no such image".into())),
        }
    }

    /// Returns the site's registry in the form that nodes need.
    ///
    /// # Errors
    /// If a certificate or key of the registry cannot be read.
    pub fn registry(&self) -> Result<NodeRegistry<'r>, Failure> {
        NodeRegistry::of(
            self.mapping.target(),
            self.site,
            self.plain_http,
            self.environment,
        )
    }

    /// Returns the site's proxy, if it has one.
    ///
    /// # Errors
    /// If its credentials or certificates cannot be read, or an entry of its NO_PROXY is
    /// ineffective.
    pub fn proxy(&self) -> Result<Option<NodeProxy>, Failure> {
        let Some(site) = self.site else {
            return Ok(None);
        };
        proxy::check(site)?;
        NodeProxy::of(site, self.environment)
    }

    /// Returns the URL of the site's file server, without a slash at the end.
    pub fn file_server(&self) -> Option<&'r str> {
        let files = self.site?.files.as_deref()?;
        Some(files.trim_end_matches('/'))
    }

    /// Returns the URL of the server that has `what`, without a slash at the end: that of the
    /// setting `url`, or else the site's file server. Fails if there is neither.
    pub(super) fn files_url(&self, what: &str) -> Result<&str, Failure> {
        let url = self.settings.get("url").or(self.file_server());
        url.map(|url| url.trim_end_matches('/')).ok_or_else(|| {
            Failure::usage(format!(
                "machines have no URL for the {what}; add `files: http://HOST:PORT` to the site, \
                 or use --set url=http://HOST:PORT"
            ))
        })
    }

    /// Returns the hosts that bypass the proxy.
    pub fn no_proxy(&self) -> NoProxyEntries {
        NoProxyEntries::of(self.site, self.target)
    }

    /// Whether the site has a proxy that nodes do not use for `url`.
    pub(super) fn has_bypass_for(&self, url: &str) -> bool {
        let proxy = self.site.and_then(|site| site.proxy.as_ref());
        let has_proxy = proxy.is_some_and(|proxy| proxy.http.is_some() || proxy.https.is_some());
        let url = Url::parse(url).ok();
        let address = url.and_then(|url| {
            let port = url.port_or_known_default()?;
            Some(format!("{}:{port}", url.host_str()?))
        });
        has_proxy
            && address.is_some_and(|address| {
                bypasses_proxy(&self.no_proxy().list(NoProxyDialect::Bare), &address)
            })
    }

    /// Whether nodes may pull an image from upstream if the registry lacks it. By default they may
    /// not: in an air gap, each such pull would wait for a timeout.
    pub fn upstream_fallback(&self) -> bool {
        let registry = self.site.and_then(|site| site.registry.as_ref());
        registry.is_some_and(|registry| registry.upstream_fallback)
    }

    /// Returns a note if nodes must not use upstream, for a `program` that always lets them.
    pub(super) fn fallback_note(&self, program: &str) -> Option<String> {
        (!self.upstream_fallback()).then(|| {
            format!(
                "if the mirrors lack an image, containerd pulls it from upstream, and {program} \
                 cannot turn that off"
            )
        })
    }

    /// Returns the URL of an upstream registry by its name in references.
    pub(super) fn upstream_url(&self, host: &str) -> String {
        match host {
            // the host of Docker Hub's API is not the host in image names
            "docker.io" => "https://registry-1.docker.io".to_owned(),
            host if self.is_plain_upstream(host) => format!("http://{host}"),
            host => format!("https://{host}"),
        }
    }

    /// Whether an upstream registry speaks plain http, according to the site or `--plain-http`.
    pub(super) fn is_plain_upstream(&self, host: &str) -> bool {
        let upstream = self.site.and_then(|site| site.upstreams.get(host));
        // with a mirror, the setting applies to the mirror, which nodes do not use
        let by_site = upstream.filter(|upstream| upstream.mirror.is_none());
        by_site.is_some_and(|upstream| upstream.plain_http) || names_host(self.plain_http, host)
    }
}

// Credentials of registries and proxies.

/// A user name and a password, as configurations of nodes have them. `Debug` is not implemented, so
/// that no message prints them.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub(crate) struct BasicCredentials {
    pub(crate) username: String,
    pub(crate) password: String,
}

impl BasicCredentials {
    /// The value of `Authorization: Basic` (RFC 7617) and of `auth` in auth files.
    pub(crate) fn encoded(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.username, self.password))
    }
}

impl From<(String, String)> for BasicCredentials {
    fn from((username, password): (String, String)) -> BasicCredentials {
        BasicCredentials { username, password }
    }
}

// The settings of platforms, for `--set KEY=VALUE`.

/// A setting of a platform.
#[derive(Debug, PartialEq, Eq)]
pub struct PlatformSetting {
    /// The key, which precedes `=` in `--set`.
    pub key: &'static str,
    /// The name of the value in the help.
    pub value_name: &'static str,
    /// The help of the setting.
    pub help: &'static str,
    /// The value without `--set`; `None` if the setting is then absent.
    pub default: Option<&'static str>,
    /// The allowed values; empty means any.
    pub choices: &'static [&'static str],
}

impl PlatformSetting {
    /// A setting without a default that accepts any value.
    pub(crate) const fn new(
        key: &'static str,
        value_name: &'static str,
        help: &'static str,
    ) -> PlatformSetting {
        PlatformSetting {
            key,
            value_name,
            help,
            default: None,
            choices: &[],
        }
    }

    /// The setting with the value `default` if it is not given.
    pub(crate) const fn with_default(self, default: &'static str) -> PlatformSetting {
        PlatformSetting {
            default: Some(default),
            ..self
        }
    }

    /// The setting with these values alone, the first of which is the default.
    pub(crate) const fn one_of(self, choices: &'static [&'static str]) -> PlatformSetting {
        PlatformSetting {
            default: Some(choices[0]),
            choices,
            ..self
        }
    }
}

/// The name of a cluster. Without it, the platform is rendered for each cluster of the site.
pub(crate) const CLUSTER: PlatformSetting = PlatformSetting::new(
    "cluster",
    "NAME",
    "The cluster, instead of the site's `clusters`",
);

/// The cluster of the site whose part of NO_PROXY applies, for a platform that is rendered once.
pub(crate) const SITE_CLUSTER: PlatformSetting = PlatformSetting {
    help: "The cluster of the site whose part of NO_PROXY applies",
    ..CLUSTER
};

/// The namespace of a cluster's objects.
pub(crate) const NAMESPACE: PlatformSetting = PlatformSetting::new(
    "namespace",
    "NAME",
    "The namespace of the cluster's objects",
);

/// How the cluster's nodes connect to their cloud.
pub(crate) const CLOUD_PROVIDER: PlatformSetting = PlatformSetting::new(
    "cloud-provider",
    "KIND",
    "in-tree: the kubelet connects to the cloud itself, so it gets the proxy too",
)
.one_of(&["external", "in-tree"]);

/// The settings of one run of a platform.
#[derive(Debug, Clone, Default)]
pub struct PlatformSettings {
    known: &'static [PlatformSetting],
    given: BTreeMap<String, String>,
}

impl PlatformSettings {
    /// Parses `pairs`, each `KEY=VALUE`, for a platform with the settings `known`.
    ///
    /// # Errors
    /// For a pair without `=`, an unknown key, or a value that the setting does not allow.
    pub fn parse(
        known: &'static [PlatformSetting],
        pairs: &[String],
    ) -> Result<PlatformSettings, Failure> {
        let mut given = BTreeMap::new();
        for pair in pairs {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| Failure::usage(format!("--set {pair}: write --set KEY=VALUE")))?;
            let Some(setting) = known.iter().find(|setting| setting.key == key) else {
                return Err(unknown(known, key));
            };
            let wrong = |why: String| wrong_value(key, value, why);
            if !setting.choices.is_empty() && !setting.choices.contains(&value) {
                return Err(wrong(format!(
                    "it must be one of {}",
                    setting.choices.join(", ")
                )));
            }
            // a line feed in a value would add lines to the rendered files
            if value.is_empty() || value.chars().any(char::is_control) {
                return Err(wrong("it must be a single line of text".into()));
            }
            if [CLUSTER.key, NAMESPACE.key].contains(&key) && !is_label(value) {
                return Err(wrong(LABEL.into()));
            }
            given.insert(key.to_owned(), value.to_owned());
        }
        Ok(PlatformSettings { known, given })
    }

    /// Returns the value of `key`: the given one or the default.
    pub fn get(&self, key: &str) -> Option<&str> {
        let given = self.given.get(key).map(String::as_str);
        given.or_else(|| self.known(key)?.default)
    }

    /// The setting `key`, if the platform has it.
    fn known(&self, key: &str) -> Option<&'static PlatformSetting> {
        self.known.iter().find(|setting| setting.key == key)
    }

    /// Returns the services of nodes that get the proxy, by [`CLOUD_PROVIDER`]: the kubelet gets it
    /// only if it connects to the cloud itself.
    pub(super) fn proxied_services(&self) -> &'static [&'static str] {
        match self.get(CLOUD_PROVIDER.key) {
            Some("in-tree") => &["containerd", "kubelet"],
            _ => &["containerd"],
        }
    }

    /// Returns the value of `key`, which the platform requires.
    ///
    /// # Errors
    /// If there is no value.
    pub fn need(&self, key: &'static str) -> Result<&str, Failure> {
        self.get(key).ok_or_else(|| {
            let help = self.known(key).map_or("", |one| one.help);
            Failure::usage(format!("--set {key}=… is missing: {help}"))
        })
    }

    /// Returns the value of `key`, which is the name of an object: the given one or the default.
    /// Fails if Kubernetes does not accept the name.
    pub(super) fn object_name(&self, key: &str) -> Result<Option<&str>, Failure> {
        match self.get(key) {
            Some(name) if !is_object_name(name) => Err(wrong_value(key, name, OBJECT_NAME)),
            name => Ok(name),
        }
    }

    /// Returns the given settings as flags of a command line.
    pub(super) fn written(&self) -> String {
        self.given
            .iter()
            .map(|(key, value)| format!(" --set {}", shell_word(&format!("{key}={value}"))))
            .collect()
    }

    /// Whether the platform has the setting `cluster`, and the user did not give it. If so, the
    /// platform is rendered for each cluster of the site.
    pub(super) fn wants_clusters(&self) -> bool {
        self.known.contains(&CLUSTER) && !self.given.contains_key(CLUSTER.key)
    }

    /// Whether the platform is rendered once, with the NO_PROXY of one cluster of the site.
    pub(super) fn takes_site_cluster(&self) -> bool {
        self.known.contains(&SITE_CLUSTER)
    }

    /// Returns the settings for this cluster of the site. A namespace given with `--set` overrides
    /// that of the site. Fails if the name or the namespace of the cluster is not valid.
    pub(super) fn of_cluster(&self, cluster: &SiteCluster) -> Result<PlatformSettings, Failure> {
        let names = [
            (CLUSTER.key, Some(&cluster.name)),
            (NAMESPACE.key, cluster.namespace.as_ref()),
        ];
        let mut settings = self.clone();
        for (key, name) in names
            .into_iter()
            .filter_map(|(key, name)| Some((key, name?)))
        {
            if !is_label(name) {
                return Err(wrong_value(key, name, LABEL));
            }
            if self.known(key).is_some() {
                settings
                    .given
                    .entry(key.to_owned())
                    .or_insert_with(|| name.clone());
            }
        }
        Ok(settings)
    }
}

/// The rule for names of clusters and namespaces (RFC 1123 label).
const LABEL: &str = "a name has at most 63 characters, only lower-case letters, digits and -, and \
                     starts and ends with a letter or digit";

fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_part(name)
}

fn unknown(known: &'static [PlatformSetting], key: &str) -> Failure {
    let keys = || known.iter().map(|setting| setting.key);
    let near = nearest(key, keys())
        .map(|near| format!(", did you mean '{near}'?"))
        .unwrap_or_default();
    let all = match keys().collect::<Vec<_>>()[..] {
        [] => "this platform has none".to_owned(),
        ref all => format!("it takes {}", all.join(", ")),
    };
    Failure::usage(format!(
        "--set {key}: there is no such setting{near} ({all})"
    ))
}

/// The failure of a setting whose value is not allowed.
pub(super) fn wrong_value(key: &str, value: impl fmt::Display, why: impl fmt::Display) -> Failure {
    Failure::usage(format!("{key} cannot be '{value}': {why}"))
}
