//! The proxy of a site, and the hosts that bypass it.

use super::credentials::SiteCredentials;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The proxy for landfall's own traffic, and the hosts that bypass it.
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
    /// The source of the proxy's user name and password.
    #[serde(default)]
    pub credentials: Option<SiteCredentials>,
    /// Hosts that are reached directly.
    #[serde(default)]
    pub no_proxy: SiteNoProxy,
}

/// The hosts that bypass the proxy: those of the installation and those of each cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteNoProxy {
    /// Names, addresses and ranges for the whole installation.
    #[serde(default)]
    pub installation: Vec<String>,
    /// The addresses and names that each cluster adds.
    #[serde(default)]
    pub cluster: Option<ClusterNoProxy>,
}

/// The part of NO_PROXY that depends on the cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ClusterNoProxy {
    /// Address range of the pods.
    #[serde(default, rename = "podCIDR")]
    pub pod_cidr: Option<String>,
    /// Address range of the services.
    #[serde(default, rename = "serviceCIDR")]
    pub service_cidr: Option<String>,
    /// DNS domain inside the cluster.
    #[serde(default)]
    pub domain: Option<String>,
    /// Host of the API server.
    #[serde(default)]
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
