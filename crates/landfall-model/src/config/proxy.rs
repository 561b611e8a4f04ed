//! The proxy of a site, and what goes past it.

use super::credentials::SiteCredentials;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A proxy for landfall's own traffic, and what nodes must not send through it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteProxy {
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
    pub credentials: Option<SiteCredentials>,
    /// Hosts that are reached directly.
    #[serde(default)]
    pub no_proxy: SiteNoProxy,
}

/// What is reached directly, in two parts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteNoProxy {
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
