//! A rule of `verify:` in a manifest or site: the signatures that matching items must have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule of `verify:`. An item needs a signature by one of `keys` or by one of `keyless`. The
/// first rule that matches an item counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SignatureRule {
    /// The items, with `*` for any text: images and charts by their repository or full reference, as
    /// in `quay.io/team/*`; files, and charts of HTTP repositories, by their URL, as in
    /// `https://dl.k8s.io/*`; git repositories by `git+` and their URL, as in
    /// `git+https://git.example.com/*`.
    pub r#match: String,
    /// Public keys: a PEM file, relative to the folder of the document, or the PEM text itself.
    /// ECDSA P-256 and P-384, Ed25519 and RSA. If `match` contains `://`, also files with OpenPGP,
    /// minisign or OpenSSH keys. For git repositories, only files with OpenPGP or OpenSSH keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Identities in certificates of Fulcio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyless: Option<KeylessSigners>,
    /// The trust root of Sigstore, a `trusted_root.json`, relative to the folder of the document.
    /// `keyless` needs it. With it, signatures by `keys` must be in its transparency log as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_root: Option<TrustedRootRule>,
    /// Conditions on the SLSA provenance, which must be signed as the rule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<ProvenanceRule>,
    /// Why these items need no signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<String>,
}

/// The file of a trust root, and where `landfall update` gets a newer one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TrustedRootRule {
    /// The file alone.
    File(String),
    /// The file and its source.
    Updated(UpdatedTrustedRoot),
}

impl TrustedRootRule {
    /// Returns the path of the file.
    pub fn file(&self) -> &str {
        match self {
            TrustedRootRule::File(file) => file,
            TrustedRootRule::Updated(updated) => &updated.file,
        }
    }
}

/// A trust root that `landfall update` replaces by the newest one of a TUF repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpdatedTrustedRoot {
    /// The `trusted_root.json`, relative to the folder of the document.
    pub file: String,
    /// The URL of the TUF repository, as in `https://tuf-repo-cdn.sigstore.dev`.
    pub from: String,
    /// The `root.json` of the TUF repository, relative to the folder of the document. Its keys are
    /// trusted at first. `landfall update` replaces the file by newer ones that these keys have
    /// signed.
    pub tuf_root: String,
}

/// One identity, or several of which one must sign.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum KeylessSigners {
    /// One identity.
    One(KeylessSigner),
    /// Several identities, of which one must sign.
    Any(Vec<KeylessSigner>),
}

impl KeylessSigners {
    /// Returns the identities.
    pub fn as_slice(&self) -> &[KeylessSigner] {
        match self {
            KeylessSigners::One(one) => std::slice::from_ref(one),
            KeylessSigners::Any(any) => any,
        }
    }
}

/// An identity in certificates of Fulcio.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeylessSigner {
    /// The URL of the identity provider, with `*` for any text.
    pub issuer: String,
    /// The e-mail address or URI in the certificate, with `*` for any text.
    pub identity: String,
}

/// Conditions on the SLSA provenance of an image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProvenanceRule {
    /// The `builder.id`, with `*` for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builder: Option<String>,
    /// The URI of the source repository, with `*` for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}
