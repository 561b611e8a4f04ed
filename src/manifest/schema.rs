//! The manifest document as people write it; `landfall schema manifest` prints these types.

use super::lists::{FORMATS, Format};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A version-pinned list of what to carry: images, files, and hosts that must stay reachable.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "landfall manifest")]
pub struct Document {
    /// `landfall/v1`.
    #[expect(dead_code, reason = "checked before the rest is read")]
    pub(super) api_version: ApiVersion,
    /// `Manifest`.
    #[expect(dead_code, reason = "checked before the rest is read")]
    pub(super) kind: DocumentKind,
    /// How people name it.
    #[expect(dead_code, reason = "for people")]
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
    /// Variables for `${name}`, local to this file. Of a list, one item for each value is made.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Values>")]
    pub(super) vars: BTreeMap<String, serde_yaml::Value>,
    /// Platforms for the images of this file and its lists, as in `linux/amd64`; all where left out.
    #[serde(default)]
    pub(super) platforms: Vec<String>,
    /// Whether signatures, attestations, SBOMs and other referrers of the images of this file and its
    /// lists are carried; they are unless this says `false`.
    #[serde(default = "yes")]
    pub(super) referrers: bool,
    /// Image lists of other tools.
    #[serde(default)]
    pub(super) lists: Vec<List>,
    /// What to leave out: a repository (all its tags), a full image reference, or a file's URL.
    #[serde(default)]
    pub(super) exclude: Vec<String>,
    /// Losses that are accepted until a date.
    #[serde(default)]
    pub(super) missing: Vec<Missing>,
    /// Images: a reference with a tag or digest, or a mapping.
    #[serde(default)]
    pub(super) images: Vec<ImageEntry>,
    /// Plain files: binaries, archives, scripts.
    #[serde(default)]
    pub(super) files: Vec<FileEntry>,
    /// Hosts that cannot be mirrored and must stay reachable.
    #[serde(default)]
    pub(super) endpoints: Vec<EndpointEntry>,
}

fn yes() -> bool {
    true
}

/// The version of landfall's documents.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub(super) enum ApiVersion {
    /// The only version so far.
    #[serde(rename = "landfall/v1")]
    V1,
}

/// The `kind` of a manifest.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(rename = "Kind")]
pub(super) enum DocumentKind {
    /// A manifest.
    Manifest,
}

/// How people name a manifest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Metadata {
    /// A name.
    #[expect(dead_code, reason = "for people")]
    pub(super) name: String,
}

/// The value of a variable, or a list of values. Numbers need quotes.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(
    dead_code,
    reason = "for the JSON schema: values are read as they stand, so that a number can be told"
)]
enum Values {
    /// One value.
    One(String),
    /// One item for each of these.
    Many(Vec<String>),
}

/// A list of images that another tool wrote.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// How it is written.
    pub(super) format: ListFormat,
    /// The file, relative to this manifest.
    pub(super) file: String,
}

/// How a list is written: a row of the table of formats.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListFormat(pub(super) &'static Format);

impl<'de> Deserialize<'de> for ListFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ListFormat, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = ListFormat;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("the name of a list format")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<ListFormat, E> {
                let found = FORMATS.iter().find(|format| format.name == name);
                found.map(ListFormat).ok_or_else(|| {
                    let known: Vec<String> =
                        FORMATS.iter().map(|format| format!("`{}`", format.name)).collect();
                    E::custom(format!("unknown variant `{name}`, expected {}", known.join(" or ")))
                })
            }
        }
        deserializer.deserialize_str(Name)
    }
}

impl JsonSchema for ListFormat {
    fn schema_name() -> Cow<'static, str> {
        "ListFormat".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let formats = FORMATS
            .iter()
            .map(|format| json!({"description": format.about, "type": "string", "const": format.name}));
        json_schema!({"description": "How a list is written.", "oneOf": formats.collect::<Vec<_>>()})
    }
}

/// A loss that is accepted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Missing {
    /// The image reference or the file's URL.
    pub(super) r#ref: String,
    /// Why it is accepted.
    pub(super) reason: String,
    /// The last day on which it is accepted, `YYYY-MM-DD`.
    pub(super) until: String,
}

/// An image.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub(super) enum ImageEntry {
    /// A reference with a tag, a digest or both.
    Short(String),
    /// With more said about it.
    Full(FullImage),
}

/// An image with more said about it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FullImage {
    /// A reference with a tag, a digest or both.
    pub(super) r#ref: String,
    /// The digest that it must have: `lock` fails if upstream answers otherwise.
    #[serde(default)]
    pub(super) digest: Option<String>,
    /// Platforms, in place of the file's.
    #[serde(default)]
    pub(super) platforms: Option<Vec<String>>,
    /// What `landfall update` may move to, as in `~1.9`.
    #[serde(default)]
    pub(super) update: Option<String>,
    /// Whether its signatures, attestations, SBOMs and other referrers are carried, in place of the file's.
    #[serde(default)]
    pub(super) referrers: Option<bool>,
}

/// A plain file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileEntry {
    /// An http or https URL.
    pub(super) url: String,
    /// `sha256:<hex>`, `sha512:<hex>`, or the URL of a checksum file, in which `${url}` stands for `url`.
    #[serde(default)]
    pub(super) checksum: Option<String>,
    /// Other URLs that the file answers to.
    #[serde(default)]
    pub(super) also: Vec<String>,
    /// Permission bits for exports, octal, as in "0755".
    #[serde(default)]
    pub(super) mode: Option<String>,
}

/// A host that cannot be mirrored.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EndpointEntry {
    /// Host name or address.
    pub(super) host: String,
    /// TCP port.
    #[schemars(range(min = 1))]
    pub(super) port: u16,
    /// What it is needed for.
    pub(super) why: String,
}

impl<'de> Deserialize<'de> for ImageEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ImageEntry, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = ImageEntry;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an image reference, or a mapping with `ref`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ImageEntry, E> {
                Ok(ImageEntry::Short(text.into()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ImageEntry, A::Error> {
                FullImage::deserialize(MapAccessDeserializer::new(map)).map(ImageEntry::Full)
            }
        }
        deserializer.deserialize_any(Entry)
    }
}
