//! The table of the rules about references in documents: one file and one row each.
//!
//! The walk finds the rules in this table only. A value that is a reference as a whole, and texts
//! within values, need no rule.

mod charts;
mod containers;
mod encoded;
mod flags;
mod full_names;
mod git_sources;
mod gitops;
mod image_keys;
mod kubermatic;
mod kustomize;
mod node_images;
mod not_references;
mod pod_status;
mod prefix;
mod secrets;
mod split;
mod suffixed;
mod variables;

use super::walk::ReferenceRule;

/// Every rule. If several claim an entry of a mapping or a value, the first one gets it.
pub(super) const RULES: &[&dyn ReferenceRule] = &[
    &not_references::NonReferenceRule,
    &pod_status::PodStatusRule,
    &node_images::NodeImageRule,
    &kustomize::KustomizeRule,
    &charts::ChartRule,
    &prefix::PrefixRule,
    &suffixed::SuffixedRule,
    &git_sources::GitSourceRule,
    &gitops::GitopsRule,
    &split::SplitRule,
    &containers::ContainerRule,
    &kubermatic::KubermaticRule,
    &variables::VariableRule,
    &flags::FlagValueRule,
    &image_keys::ImageKeyRule,
    &flags::ImageFlagRule,
    &full_names::FullNameRule,
    &secrets::SecretRule,
    &encoded::EncodedRule,
];
