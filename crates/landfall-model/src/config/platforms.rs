//! The clusters of a site, and the names that must resolve there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cluster that configuration is rendered for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteCluster {
    /// The name of the cluster.
    pub name: String,
    /// The namespace of the objects of the cluster.
    #[serde(default)]
    pub namespace: Option<String>,
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
