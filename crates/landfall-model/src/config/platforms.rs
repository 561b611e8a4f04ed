//! What platforms are set up by: clusters, and the names that must resolve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cluster that configuration is rendered for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteCluster {
    /// Its name.
    pub name: String,
    /// The namespace that its objects are in.
    #[serde(default)]
    pub namespace: Option<String>,
}

/// Names that must resolve at the site: one, or several with those that a certificate must have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RequiredNames {
    /// A name; `*.` at its start stands for any label.
    One(String),
    /// Names, and what the certificate shown there must have.
    Entry(RequiredNamesEntry),
}

/// Names that must resolve, and what the certificate shown there must have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredNamesEntry {
    /// The names; `*.` at the start of one stands for any label.
    pub dns: Vec<String>,
    /// The names that the certificate must have.
    #[serde(default)]
    pub certificate: Vec<String>,
}

impl RequiredNames {
    /// The names that must resolve.
    pub fn dns(&self) -> &[String] {
        match self {
            RequiredNames::One(name) => std::slice::from_ref(name),
            RequiredNames::Entry(entry) => &entry.dns,
        }
    }

    /// The names that the certificate shown there must have.
    pub fn certificate(&self) -> &[String] {
        match self {
            RequiredNames::One(_) => &[],
            RequiredNames::Entry(entry) => &entry.certificate,
        }
    }
}
