//! Chart.yaml and requirements.yaml, as far as they matter here.

use landfall_model::document::yaml;
use serde::Deserialize;
use serde_yaml::Value;
use std::collections::BTreeMap;

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
    #[serde(default)]
    annotations: BTreeMap<String, Value>,
}

impl Metadata {
    /// The images that it says the chart has: Artifact Hub's list, Bitnami's, and Helm's own
    /// convention.
    pub(super) fn images(&self) -> Vec<String> {
        const LISTS: [&str; 3] = ["artifacthub.io/images", "images", "helm.sh/images"];
        let texts = LISTS
            .iter()
            .filter_map(|key| self.annotations.get(*key)?.as_str());
        let lists = texts
            .filter_map(|text| yaml::from_str::<Vec<Value>>(text).ok())
            .flatten();
        lists
            .filter_map(|entry| Some(entry.get("image")?.as_str()?.trim().to_owned()))
            .collect()
    }
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
