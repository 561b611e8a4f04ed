//! The transport of upstream hosts on the connected side.

use super::credentials::SiteCredentials;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The transport of one upstream host.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteUpstream {
    /// URL of a mirror to which requests for this host are sent instead. Names in the lock do not
    /// change.
    #[serde(default)]
    pub mirror: Option<String>,
    /// Whether the mirror lists all tags of the host, as a full copy or a cache that forwards tag
    /// lists does. Otherwise landfall requests each tag that a signature may have.
    #[serde(default)]
    pub lists_all_tags: bool,
    /// The maximum number of requests at once to this host.
    #[serde(default)]
    pub max_concurrent: Option<usize>,
    /// Certificate authority in PEM form, added to the system's.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Use plain http for this host.
    #[serde(default, rename = "plainHTTP")]
    pub plain_http: bool,
    /// Accept any certificate. Every run warns about this.
    #[serde(default)]
    pub skip_verify: bool,
    /// Reach the mirror through the proxy.
    #[serde(default)]
    pub via_proxy: bool,
    /// The source of user name and password for this host.
    #[serde(default)]
    pub credentials: Option<SiteCredentials>,
}
