//! The private registry of a site, and the paths in it.

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
    pub credentials: Option<SiteCredentials>,
    /// Source prefix -> destination path(s). The longest matching prefix wins, on whole components.
    #[serde(default)]
    pub paths: BTreeMap<String, PathDestinations>,
    /// Put the source host first in the destination path.
    #[serde(default)]
    pub keep_host: bool,
    /// What to do where the target refuses an index with missing children.
    #[serde(default)]
    pub index: IndexPolicy,
    /// Whether nodes may ask upstream for what the registry lacks.
    #[serde(default)]
    pub upstream_fallback: bool,
}

/// One destination path, several, or an entry with credentials of its own.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PathDestinations {
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
