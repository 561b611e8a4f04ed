//! The manifest document as people write it; `landfall schema manifest` prints these types.

use crate::item::{ItemKind, kinds};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

macro_rules! document {
    ($($(#[doc = $doc:tt])* $(#[cfg($only:meta)])* $section:ident: $kind:ty,)*) => {
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
            pub(super) kind: Kind,
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
            $(
                $(#[doc = $doc])*
                $(#[cfg($only)])*
                #[serde(default)]
                pub(super) $section: Vec<<$kind as ItemKind>::Written>,
            )*
            /// Hosts that cannot be mirrored and must stay reachable.
            #[serde(default)]
            pub(super) endpoints: Vec<EndpointEntry>,
        }
    };
}
kinds!(document);

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
pub(super) enum Kind {
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

/// How a list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ListFormat {
    /// One reference a line; `#` begins a comment.
    ImagesTxt,
    /// The stderr of `kubermatic-installer mirror-images --dry-run -o json REGISTRY`.
    Kkp,
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
