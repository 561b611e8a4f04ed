//! The table of the shapes in which documents write references: one file and one row each.
//!
//! The walk finds the shapes in this table only. A value that is a reference as a whole, and texts
//! within values, need no shape.

mod containers;
mod encoded;
mod gitops;
mod image_keys;
mod kubermatic;
mod kustomize;
mod not_references;
mod prefix;
mod secrets;
mod split;
mod suffixed;

use super::walk::ReferenceShape;

pub(super) use containers::{is_container, is_list_of_containers};
pub(super) use not_references::is_our_own;

/// Every shape. If several claim an entry of a mapping or a value, the first one gets it.
pub(super) const SHAPES: &[&dyn ReferenceShape] = &[
    &not_references::NonReferenceShape,
    &kustomize::KustomizeShape,
    &prefix::PrefixShape,
    &suffixed::SuffixedShape,
    &gitops::GitopsShape,
    &split::SplitShape,
    &containers::ContainerShape,
    &kubermatic::KubermaticShape,
    &image_keys::ImageKeyShape,
    &secrets::SecretShape,
    &encoded::EncodedShape,
];
