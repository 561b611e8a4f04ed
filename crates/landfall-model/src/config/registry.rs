//! The private registry of a site, and the destination paths in it.

use super::credentials::SiteCredentials;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

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
    /// Private key of the client certificate in PEM form.
    #[serde(default)]
    pub client_key: Option<PathBuf>,
    /// Use plain http, also for credentials.
    #[serde(default, rename = "plainHTTP")]
    pub plain_http: bool,
    /// Accept any certificate. Every run warns about this.
    #[serde(default)]
    pub skip_verify: bool,
    /// Reach the registry through the proxy.
    #[serde(default)]
    pub via_proxy: bool,
    /// The source of user name and password.
    #[serde(default)]
    pub credentials: Option<SiteCredentials>,
    /// The destination path or paths for each source prefix. The longest matching prefix of whole
    /// components wins.
    #[serde(default)]
    pub paths: BTreeMap<String, PathDestinations>,
    /// Put the source host first in the destination path.
    #[serde(default)]
    pub keep_host: bool,
    /// What to do if the target refuses an index with missing children.
    #[serde(default)]
    pub index: IndexPolicy,
    /// Whether nodes may pull an image from upstream if the registry lacks it.
    #[serde(default)]
    pub upstream_fallback: bool,
}

/// The destinations of a source prefix: one path, several paths, or paths with their own
/// credentials.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PathDestinations {
    /// A single path, to which content is pushed and references point.
    One(String),
    /// Several paths: all are pushed, the first is written into references.
    Many(Vec<String>),
    /// Paths with their own credentials.
    Entry(PathEntry),
}

/// Destination paths with their own credentials.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathEntry {
    /// The destination paths: all are pushed, the first is written into references.
    pub to: Vec<String>,
    /// The source of user name and password for these paths.
    #[serde(default)]
    pub credentials: Option<SiteCredentials>,
}

impl PathDestinations {
    /// The destination paths, in order.
    pub fn paths(&self) -> &[String] {
        match self {
            PathDestinations::One(path) => std::slice::from_ref(path),
            PathDestinations::Many(paths) => paths,
            PathDestinations::Entry(entry) => &entry.to,
        }
    }
}

/// What a push does with signatures and other referrers. Those that `verify` of the site demands
/// are always required.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReferrerPolicy {
    /// An item gets its tag only after its referrers were delivered.
    Required,
    /// An item is delivered even if the registry refuses some of its referrers. These are reported
    /// as failed.
    #[default]
    Try,
    /// Referrers are not delivered.
    Skip,
}

/// What to do if a target refuses an index with missing children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IndexPolicy {
    /// Send the trimmed index, report it, and record the old and the new digest.
    #[default]
    Trimmed,
    /// Refuse the push before the first blob is sent.
    Exact,
}
