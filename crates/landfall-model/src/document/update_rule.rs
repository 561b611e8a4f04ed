//! The value of `update` in a manifest: a policy, or a mapping with a policy and further rules.

use crate::MinimumAge;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
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
    #[serde(default)]
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

    /// This rule with `policy`. If the rule has no minimum age, it gets `default`, the minimum age
    /// of the manifest.
    #[must_use]
    pub fn completed(&self, policy: String, default: Option<&MinimumAge>) -> UpdateRule {
        UpdateRule {
            policy,
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
        struct UpdateRuleVisitor;
        impl<'de> Visitor<'de> for UpdateRuleVisitor {
            type Value = UpdateRule;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an update policy, or a mapping with `policy`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<UpdateRule, E> {
                Ok(UpdateRule::new(text))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UpdateRule, A::Error> {
                let UpdateRuleFields {
                    policy,
                    min_age,
                    keep,
                } = UpdateRuleFields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(UpdateRule {
                    policy,
                    min_age,
                    keep,
                })
            }
        }
        deserializer.deserialize_any(UpdateRuleVisitor)
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

impl<'de> Deserialize<'de> for MinimumAge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MinimumAge, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
