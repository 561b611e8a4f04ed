//! Chart.yaml and requirements.yaml, as far as they matter here.

use serde::Deserialize;
use serde_yaml::Value;

/// Chart.yaml, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Value,
    #[serde(default)]
    pub(super) app_version: Value,
    #[serde(default)]
    pub(super) dependencies: Vec<Dependency>,
}

/// requirements.yaml of charts for Helm 2.
#[derive(Default, Deserialize)]
pub(super) struct Requirements {
    #[serde(default)]
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Value,
    #[serde(default)]
    pub(super) alias: Option<String>,
    #[serde(default)]
    pub(super) condition: Option<String>,
}
