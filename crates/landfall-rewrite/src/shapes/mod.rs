//! The table of shapes of references in documents: one file and one row each.
//!
//! The walk knows the shapes by this table alone. A value that is a reference as a whole, and texts
//! within values, need no shape.

mod containers;
mod encoded;
mod image_keys;
mod kubermatic;
mod kustomize;
mod not_references;
mod prefix;
mod secrets;
mod split;
mod suffixed;

use super::walk::Shape;

pub(super) use containers::{is_container, is_list_of_containers};
pub(super) use not_references::is_our_own;

/// Every shape. Where several claim the entries of a mapping, or a value, the first one gets them.
pub(super) const SHAPES: &[&dyn Shape] = &[
    &not_references::NotReferences,
    &kustomize::Kustomize,
    &prefix::Prefix,
    &suffixed::SuffixedRepository,
    &split::Split,
    &containers::Containers,
    &kubermatic::Kubermatic,
    &image_keys::ImageKeys,
    &secrets::Secrets,
    &encoded::Encoded,
];
