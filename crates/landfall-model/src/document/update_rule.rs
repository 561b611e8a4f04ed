//! The value of `update` in a manifest: a policy, or a mapping with a policy and further rules.

use crate::{MinimumAge, text_or_mapping};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::num::NonZeroUsize;

/// The versions to which `landfall update` may move an item or variable, their minimum age, and how
/// many versions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateRule {
    /// The policy: `patch`, `minor`, a range, a pattern, `digest` or `never`.
    pub policy: String,
    /// How long ago this project must have first seen a version. If `None`, the `minAge` of
    /// the manifest applies.
    pub min_age: Option<MinimumAge>,
    /// The number of versions that `landfall update` keeps. If `None`, it moves each written
    /// version by itself.
    pub keep: Option<NonZeroUsize>,
}

/// The mapping of an [`UpdateRule`], as it is written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "UpdateRules")]
struct UpdateRuleFields {
    /// The versions that the item or variable may move to: `patch`, `minor`, a range such as
    /// `~1.9`, a pattern, `digest`, or `never`.
    policy: String,
    /// How long ago this project must have first seen a version, as in `12h`, `7d` or `2w`.
    /// Overrides the manifest's `minAge`.
    #[schemars(with = "Option<String>")]
    min_age: Option<MinimumAge>,
    /// The number of versions to keep, for an image, a chart, or a variable with a list of values.
    /// With the policy `patch`, the newest patches are kept. With other policies, the newest patch
    /// of each of the newest minor versions is kept.
    #[serde(default)]
    #[schemars(with = "Option<usize>")]
    keep: Option<NonZeroUsize>,
}

/// A policy alone, or with further rules.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "UpdateRule")]
#[expect(dead_code, reason = "for the JSON schema")]
enum UpdateRuleSchema {
    /// The policy: `patch`, `minor`, a range such as `~1.9`, a pattern, `digest`, or `never`.
    Policy(String),
    /// The policy with further rules.
    Rules(UpdateRuleFields),
}

impl UpdateRule {
    /// A policy without further rules.
    pub fn new(policy: impl Into<String>) -> UpdateRule {
        UpdateRule {
            policy: policy.into(),
            min_age: None,
            keep: None,
        }
    }

    /// This rule. If it has no minimum age, it gets `default`, the minimum age of the manifest.
    #[must_use]
    pub fn completed(&self, default: Option<&MinimumAge>) -> UpdateRule {
        UpdateRule {
            policy: self.policy.clone(),
            min_age: self.min_age.as_ref().or(default).cloned(),
            keep: self.keep,
        }
    }
}

impl fmt::Display for UpdateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.policy)?;
        if let Some(age) = &self.min_age {
            write!(f, ", minAge {age}")?;
        }
        match self.keep {
            Some(keep) => write!(f, ", keep {keep}"),
            None => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for UpdateRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UpdateRule, D::Error> {
        let expected = "an update policy, or a mapping with `policy`";
        let of_fields = |fields: UpdateRuleFields| UpdateRule {
            policy: fields.policy,
            min_age: fields.min_age,
            keep: fields.keep,
        };
        text_or_mapping(deserializer, expected, UpdateRule::new, of_fields)
    }
}

impl JsonSchema for UpdateRule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        UpdateRuleSchema::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        UpdateRuleSchema::json_schema(generator)
    }
}

crate::serde_as_text!(MinimumAge);

/// A rule of `verify:`. An item needs a signature by one of `keys` or by one of `keyless`. The
/// first rule that matches an item counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SignatureRule {
    /// The items, with `*` for any text: images and charts by their repository or full reference,
    /// as in `quay.io/team/*`; files, and charts of HTTP repositories, by their URL, as in
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
