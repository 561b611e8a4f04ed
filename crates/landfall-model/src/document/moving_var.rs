//! A variable of a manifest that `landfall update` may move: its value, its policy, and the source
//! of its versions.

use super::update_rule::UpdateRule;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_yaml::Value;

/// A variable that `landfall update` may move.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MovingVar {
    /// One value, or a list of values. Numbers need quotes.
    #[schemars(with = "OneOrMany")]
    pub value: Value,
    /// The versions that the variable may move to: `patch`, `minor`, a range such as `~1.9`, a
    /// pattern, or `never`. To set `minAge` or `keep` as well, write a mapping with one of these as
    /// `policy`.
    pub update: UpdateRule,
    /// Where the versions of the variable are listed. By default, they are the tags of the first
    /// image whose tag contains this variable and no other variable. If there is no such image,
    /// they are read from the package repositories of the first package whose version contains the
    /// variable.
    #[serde(default)]
    pub from: Option<VersionsFrom>,
}

/// A text or a list of texts.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "for the JSON schema")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Where the versions of a variable are listed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum VersionsFrom {
    /// The URL of a text with one version per line, or the name of an image repository whose tags
    /// are the versions.
    Text(String),
    /// A JSON document, and the path to its versions, such as `[].tag_name`.
    Json(JsonVersions),
    /// The index of a chart repository.
    Chart(ChartVersions),
}

/// Versions in a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonVersions {
    /// The URL of the document.
    pub url: String,
    /// Keys with dots between them, `[]` for every element of a list, `[0]` for the first element,
    /// `{}` for the keys of an object.
    pub path: String,
}

/// The versions of a chart in the index of its repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChartVersions {
    /// The URL of the repository.
    pub repo: String,
    /// The name of the chart.
    pub chart: String,
}
