//! The manifest document. `landfall schema manifest` prints the JSON schema of these types.

use super::lists::{FORMATS, ImageListFormat};
use crate::chart::ChartEntry;
use crate::file::FileEntry;
use crate::git::GitEntry;
use crate::image::ImageEntry;
use crate::packages::PackageEntry;
use crate::provider::ProviderEntry;
use landfall_model::MinimumAge;
use landfall_model::document::{MovingVar, SignatureRule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A version-pinned list of items to carry: images, files, charts, packages, git repositories and
/// providers; and hosts that must stay reachable.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "landfall manifest")]
pub struct ManifestDocument {
    /// The version of the document format: `landfall/v1`.
    #[expect(dead_code, reason = "checked before the rest is read")]
    pub(super) api_version: ManifestApiVersion,
    /// The kind of document: `Manifest`.
    #[expect(dead_code, reason = "checked before the rest is read")]
    pub(super) kind: DocumentKind,
    /// The name of the manifest.
    #[serde(default)]
    pub(super) metadata: Option<ManifestMetadata>,
    /// Variables for `${name}`, local to this file. A list expands to one item for each value.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, VariableValue>")]
    pub(super) vars: BTreeMap<String, serde_yaml::Value>,
    /// Platforms for the images in this file and in its lists, as in `linux/amd64`. The default is
    /// all platforms.
    #[serde(default)]
    pub(super) platforms: Vec<String>,
    /// Whether to carry referrers of images, such as signatures, attestations and SBOMs. Applies to
    /// the images in this file and in its lists. The default is true.
    #[serde(default = "yes")]
    pub(super) referrers: bool,
    /// The minimum age of a new version before `landfall update` uses it, as in `12h`, `7d` or
    /// `2w`. The age counts from the time at which this project first saw the version, or from an
    /// earlier time in a transparency log. An `update` with its own `minAge` overrides it.
    #[schemars(with = "Option<String>")]
    pub(super) min_age: Option<MinimumAge>,
    /// Image lists of other tools.
    #[serde(default)]
    pub(super) lists: Vec<ListEntry>,
    /// Items to omit: a repository (all its tags), a full image reference, the URL of a file, or
    /// the name of an item of another kind.
    #[serde(default)]
    pub(super) exclude: Vec<String>,
    /// Items whose loss is accepted until a date, because upstream removed them.
    #[serde(default)]
    pub(super) missing: Vec<MissingEntry>,
    /// The signatures that images, charts and files must have. The first matching rule applies; an
    /// item that no rule matches needs no signature.
    #[serde(default)]
    pub(super) verify: Vec<SignatureRule>,
    /// Images: a reference with a tag or digest, or a mapping.
    #[serde(default)]
    pub(super) images: Vec<ImageEntry>,
    /// Plain files: binaries, archives, scripts.
    #[serde(default)]
    pub(super) files: Vec<FileEntry>,
    /// Helm charts: `oci://registry/path/name:version`, or a mapping.
    #[serde(default)]
    pub(super) charts: Vec<ChartEntry>,
    /// OS packages with their dependencies: `apt: {…}` or `yum: {…}`.
    #[serde(default)]
    pub(super) packages: Vec<PackageEntry>,
    /// Git repositories: a URL, and branches and tags.
    #[serde(default)]
    pub(super) git: Vec<GitEntry>,
    /// Providers of OpenTofu and Terraform: a lock file, or a source address and a version.
    #[serde(default)]
    pub(super) providers: Vec<ProviderEntry>,
    /// Hosts that cannot be mirrored and must stay reachable.
    #[serde(default)]
    pub(super) endpoints: Vec<EndpointEntry>,
}

fn yes() -> bool {
    true
}

/// The version of landfall's documents.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(rename = "ApiVersion")]
pub(super) enum ManifestApiVersion {
    /// The only version so far.
    #[serde(rename = "landfall/v1")]
    V1,
}

/// The `kind` of a manifest.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(rename = "Kind")]
pub(super) enum DocumentKind {
    /// A landfall manifest.
    Manifest,
}

/// The name of a manifest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Metadata")]
pub(super) struct ManifestMetadata {
    /// The name. Bundles that are packed with `--serial` form a series of this name.
    pub(super) name: String,
}

/// The value of a variable, a list of values, or a value with an update policy. Numbers need
/// quotes.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(
    dead_code,
    reason = "for the JSON schema: values are read as any YAML, so that numbers can be reported"
)]
#[schemars(rename = "Values")]
enum VariableValue {
    /// One value for every item.
    One(String),
    /// One item for each of these values.
    Many(Vec<String>),
    /// A value that `landfall update` may move.
    Moving(MovingVar),
}

/// An image list of another tool.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "List")]
pub(super) struct ListEntry {
    /// The format of the list.
    pub(super) format: ListFormat,
    /// The path of the list, relative to this manifest.
    pub(super) file: String,
    /// The URL from which `landfall update` replaces the file; it may use variables.
    #[serde(default)]
    pub(super) from: Option<String>,
}

/// The format of a list: a row of the table of formats.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListFormat(pub(super) &'static ImageListFormat);

impl<'de> Deserialize<'de> for ListFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ListFormat, D::Error> {
        struct ListFormatVisitor;
        impl Visitor<'_> for ListFormatVisitor {
            type Value = ListFormat;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("the name of a list format")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<ListFormat, E> {
                let found = FORMATS.iter().find(|format| format.name == name);
                found.map(ListFormat).ok_or_else(|| {
                    let known: Vec<String> = FORMATS
                        .iter()
                        .map(|format| format!("`{}`", format.name))
                        .collect();
                    E::custom(format!(
                        "unknown variant `{name}`, expected {}",
                        known.join(" or ")
                    ))
                })
            }
        }
        deserializer.deserialize_str(ListFormatVisitor)
    }
}

impl JsonSchema for ListFormat {
    fn schema_name() -> Cow<'static, str> {
        "ListFormat".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let formats = FORMATS.iter().map(
            |format| json!({"description": format.about, "type": "string", "const": format.name}),
        );
        json_schema!({"description": "The format of a list.", "oneOf": formats.collect::<Vec<_>>()})
    }
}

/// An item whose loss is accepted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Missing")]
pub(super) struct MissingEntry {
    /// The image reference, the URL of a file, or the name of an item of another kind.
    pub(super) r#ref: String,
    /// Why the loss is accepted, for reports.
    pub(super) reason: String,
    /// The last day on which the loss is accepted, `YYYY-MM-DD`.
    pub(super) until: String,
}

/// A host that cannot be mirrored.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EndpointEntry {
    /// The host name or IP address. `*.` at the start of a name matches every subdomain.
    pub(super) host: String,
    /// The TCP port that must be reachable.
    #[schemars(range(min = 1))]
    pub(super) port: u16,
    /// What the endpoint is needed for.
    pub(super) why: String,
    /// The roles of the machines that need the endpoint, as `landfall doctor --role` names them.
    /// The default is all roles.
    #[serde(default)]
    pub(super) from: Vec<String>,
}
