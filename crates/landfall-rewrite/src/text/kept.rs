//! Documents in which nothing may be changed, in texts that do not parse.

use super::kinds::{documents, is_of_kind};
use std::ops::Range;

/// Why nothing in the schema of a CustomResourceDefinition is changed.
pub(crate) const CRD_SCHEMA: &str = "it stands in the schema of a CustomResourceDefinition";
/// Why nothing in a mirror set is changed.
pub(crate) const MIRROR_SET: &str = "it says what a mirror stands in for";

/// Kinds of documents that are kept, and why.
const KINDS: [(&str, &str); 4] = [
    ("CustomResourceDefinition", CRD_SCHEMA),
    ("ImageDigestMirrorSet", MIRROR_SET),
    ("ImageTagMirrorSet", MIRROR_SET),
    ("ImageContentSourcePolicy", MIRROR_SET),
];

/// The documents of `text` in which nothing may be changed, and why.
pub(super) fn kept(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let why = |document: &str| {
        let schema = document.contains("openAPIV3Schema").then_some(CRD_SCHEMA);
        let kind = || {
            KINDS
                .iter()
                .find(|(kind, _)| document.contains(kind) && is_of_kind(document, &[kind]))
        };
        schema.or_else(|| kind().map(|(_, why)| *why))
    };
    documents(text)
        .filter_map(|(range, document)| Some((range, why(document)?)))
        .collect()
}
