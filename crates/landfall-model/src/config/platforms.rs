//! The clusters of a site, and the names that must resolve there.

use super::proxy::ClusterNoProxy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cluster that configuration is rendered for. Its addresses override those of
/// `proxy.noProxy.cluster`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteCluster {
    /// The name of the cluster.
    pub name: String,
    /// The namespace of the objects of the cluster.
    #[serde(default)]
    pub namespace: Option<String>,
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

impl SiteCluster {
    /// The part of NO_PROXY that the cluster itself has.
    pub fn no_proxy(&self) -> ClusterNoProxy {
        ClusterNoProxy {
            pod_cidr: self.pod_cidr.clone(),
            service_cidr: self.service_cidr.clone(),
            domain: self.domain.clone(),
            control_plane_endpoint: self.control_plane_endpoint.clone(),
        }
    }
}

/// Names that must resolve at the site, and optionally the names that the certificate of their
/// server must contain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RequiredNames {
    /// A single name; `*.` at its start matches any label.
    One(String),
    /// Names that must resolve, and the names that the certificate of their server must contain.
    Entry(RequiredNamesEntry),
}

/// Names that must resolve, and the names that the certificate of their server must contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredNamesEntry {
    /// The names that must resolve; `*.` at the start of one matches any label.
    pub dns: Vec<String>,
    /// The names that the certificate must contain. By default, these are the names under `dns`;
    /// with an empty list, no certificate is checked.
    #[serde(default)]
    pub certificate: Option<Vec<String>>,
}

impl RequiredNames {
    /// The names that must resolve.
    pub fn dns(&self) -> &[String] {
        match self {
            RequiredNames::One(name) => std::slice::from_ref(name),
            RequiredNames::Entry(entry) => &entry.dns,
        }
    }

    /// Returns the names that the certificate of the server must contain.
    pub fn certificate(&self) -> &[String] {
        match self {
            RequiredNames::One(name) => std::slice::from_ref(name),
            RequiredNames::Entry(entry) => entry.certificate.as_deref().unwrap_or(&entry.dns),
        }
    }
}
