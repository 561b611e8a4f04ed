//! The table of the rules about references in documents: a file for each subject, and a row
//! for each rule.
//!
//! The walk finds the rules in this table only. A value that is a reference as a whole, and texts
//! within values, need no rule.

mod encoded;
mod images;
mod not_references;
mod prefix;
mod sources;
mod split;

use crate::walk::ReferenceRule;

/// Every rule. If several claim an entry of a mapping or a value, the first one gets it.
pub(super) const RULES: &[&dyn ReferenceRule] = &[
    &not_references::NonReferenceRule,
    &images::PodStatusRule,
    &images::NodeImageRule,
    &prefix::KustomizeRule,
    &sources::ChartRule,
    &prefix::PrefixRule,
    &split::SuffixedRule,
    &sources::GitSourceRule,
    &sources::GitopsRule,
    &split::SplitRule,
    &images::ContainerRule,
    &images::KubermaticRule,
    &images::VariableRule,
    &images::FlagValueRule,
    &images::ImageKeyRule,
    &images::ImageFlagRule,
    &images::FullNameRule,
    &encoded::SecretRule,
    &encoded::EncodedRule,
];
