//! The fields of Chart.yaml and requirements.yaml that landfall uses.

use landfall_model::document::yaml;
use serde::Deserialize;
use serde_yaml::Value;
use std::collections::BTreeMap;

/// The fields of Chart.yaml that landfall uses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HelmMetadata {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Value,
    #[serde(default)]
    pub(super) app_version: Value,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    pub(super) dependencies: Vec<HelmDependency>,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    annotations: BTreeMap<String, Value>,
}

impl HelmMetadata {
    /// The images in the annotations of Artifact Hub, of Bitnami, and of Helm's own convention.
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

/// The dependencies in requirements.yaml, a file of charts for Helm 2.
#[derive(Default, Deserialize)]
pub(super) struct HelmRequirements {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    pub(super) dependencies: Vec<HelmDependency>,
}

#[derive(Deserialize)]
pub(super) struct HelmDependency {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Value,
    #[serde(default)]
    pub(super) repository: Value,
    #[serde(default)]
    pub(super) alias: Option<String>,
    #[serde(default)]
    pub(super) condition: Option<String>,
    #[serde(default)]
    tags: Value,
}

impl HelmDependency {
    /// The tags, by which values enable or disable several dependencies.
    pub(super) fn tags(&self) -> Vec<String> {
        let tags = self.tags.as_sequence().into_iter().flatten();
        tags.filter_map(|tag| Some(tag.as_str()?.to_owned()))
            .collect()
    }
}
