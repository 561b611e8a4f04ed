//! How hosts of the connected side are reached.

use super::credentials::SiteCredentials;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How one upstream host is reached.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteUpstream {
    /// URL that the host's first requests go to instead, without changing a name in a lock.
    #[serde(default)]
    pub mirror: Option<String>,
    /// The mirror's lists of tags are those of the host: it is a whole copy, or a cache that
    /// forwards lists. Without this, landfall asks a mirror for each tag that a signature may have.
    #[serde(default)]
    pub lists_all_tags: bool,
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
    pub credentials: Option<SiteCredentials>,
}
