//! Rules: the behaviour in which a registry product differs from the distribution specification, as
//! the profiles in `support/zoo` describe it.

use serde::Deserialize;
use serde_json::Value;

/// One difference from the specification. Without rules, the server has a referrers API, refuses
/// indexes with missing children, mounts blobs, lists all tags at once and deletes manifests.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rule {
    /// Refuses some manifests.
    Refuses(Refusal),
    /// Accepts indexes whose children are missing.
    SparseIndexes(Accepted),
    /// The response of a registry without referrers API.
    NoReferrersApi(Response),
    /// The response of the referrers API for a manifest that does not exist.
    ReferrersOfUnknown(Response),
    /// Whether the response to a manifest with a subject has `OCI-Subject`.
    OciSubject(bool),
    /// The tag `sha256-<hex>` is read as the digest `sha256:<hex>`.
    TagsAreDigests(bool),
    /// The response to a mount of a blob if no tagged manifest of the source repository has it.
    MountUncommitted(Response),
    /// The response to a mount without `from`.
    MountWithoutFrom(Response),
    /// The response to HEAD of a manifest.
    ManifestHead(Response),
    /// Responses to GET and HEAD of manifests lack `Docker-Content-Digest`.
    NoContentDigest(bool),
    /// The response for manifests and blobs that do not exist.
    Missing(Response),
    /// Ranges of blobs.
    Ranges(Ranges),
    /// Lists of tags.
    Tags(TagList),
    /// The response to the deletion of a manifest by digest.
    DeleteDigest(Response),
    /// The response to the deletion of a tag.
    DeleteTag(Response),
    /// The response to the deletion of a manifest that an index lists.
    DeleteChild(Response),
    /// The response to the deletion of a manifest without tags.
    DeleteUntagged(Response),
    /// Uploads.
    Upload(Upload),
    /// Requests need a token: the document that the token service returns, in which `TOKEN` is
    /// replaced.
    Token(String),
    /// Blobs are redirected to a folder of the host, or to another host.
    RedirectsBlobs { status: u16, path: Option<String> },
    /// The response if a tag that exists is written, even with the same manifest.
    ImmutableTags(Response),
    /// Successful responses to uploads and to manifests that are put have the type of HTML.
    HtmlResponses(bool),
    /// Headers of every response to a GET or HEAD of a manifest.
    ManifestHeaders(Vec<(String, String)>),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    Accepted,
}

/// The manifests that a registry refuses, by the properties that are set, and its response.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Refusal {
    /// Content types other than these.
    pub content_types_except: Option<Vec<String>>,
    /// Media types of the config other than these.
    pub config_types_except: Option<Vec<String>>,
    /// Artifact types other than these.
    pub artifact_types_except: Option<Vec<String>>,
    /// These media types of layers.
    pub layer_types: Option<Vec<String>>,
    #[serde(default)]
    pub subjects: bool,
    #[serde(default)]
    pub sparse_indexes: bool,
    #[serde(default)]
    pub nested_indexes: bool,
    /// Manifests of more bytes.
    pub larger_than: Option<usize>,
    /// Repositories with more path components.
    pub deeper_than: Option<usize>,
    pub with: Response,
}

/// A response. In its texts, `TYPE` is the media type or digest that was refused, `REPO` the
/// repository and `REFERENCE` the tag or digest in the path.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Response {
    pub status: u16,
    /// The code of an error in the format of the distribution specification.
    pub code: Option<String>,
    #[serde(default)]
    pub message: String,
    pub detail: Option<Value>,
    /// A plain text instead of such an error.
    pub text: Option<String>,
    /// An HTML page instead of such an error, by its title.
    pub page: Option<String>,
    /// Another JSON document.
    pub json: Option<Value>,
    /// The path at the second host to redirect to.
    pub location: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ranges {
    /// The whole blob is sent, with status 200.
    Ignored,
    /// This status is sent.
    Refused(u16),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TagList {
    /// The maximum number of tags on a page; without it, pages are made only for requests with `n`.
    pub page: Option<usize>,
    /// Requests whose `Accept` does not name JSON get 406.
    #[serde(default)]
    pub only_json: bool,
    /// Requests with `n` get all tags.
    #[serde(default)]
    pub n_ignored: bool,
    /// The target of `Link`. `REPO` is replaced by the repository, `TAIL` by the repository without
    /// its first component, `HOST` by the host, `N` by the size of the page and `LAST` by the last
    /// tag.
    pub link: Option<String>,
    /// The last page has a `Link` too; the page after it is empty.
    #[serde(default)]
    pub always_linked: bool,
    /// The last page has a `Link` too if it is full.
    #[serde(default)]
    pub linked_if_full: bool,
    /// An empty list is `null`.
    #[serde(default)]
    pub null: bool,
    /// The response for a repository that does not exist.
    pub unknown: Option<Response>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Upload {
    /// The form of `Location`.
    pub location: Option<UploadLocation>,
    /// The status of a successful PATCH.
    pub patch: Option<u16>,
    /// The response to every PATCH.
    pub no_patch: Option<Response>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UploadLocation {
    /// A path.
    Relative,
}
