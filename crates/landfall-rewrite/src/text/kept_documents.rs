//! Finds documents in which nothing may be changed, in texts that are not YAML.

use super::document_kinds::{documents, is_of_kind};
use std::ops::Range;

/// The reason why nothing in the schema of a CustomResourceDefinition is changed.
pub(crate) const CRD_SCHEMA: &str = "it is in the schema of a CustomResourceDefinition";
/// The reason why nothing in a mirror set is changed.
pub(crate) const MIRROR_SET: &str = "it names the source of a mirror";

/// Kinds of documents in which nothing is changed, with the reason.
const KINDS: [(&str, &str); 4] = [
    ("CustomResourceDefinition", CRD_SCHEMA),
    ("ImageDigestMirrorSet", MIRROR_SET),
    ("ImageTagMirrorSet", MIRROR_SET),
    ("ImageContentSourcePolicy", MIRROR_SET),
];

/// The documents of `text` in which nothing may be changed, with the reason.
pub(super) fn kept(text: &str) -> Vec<(Range<usize>, &'static str)> {
    documents(text)
        .filter_map(|(range, document)| Some((range, reason_to_keep(document)?)))
        .collect()
}

fn reason_to_keep(document: &str) -> Option<&'static str> {
    // a template may contain the schema without the `kind`
    if document.contains("openAPIV3Schema") {
        return Some(CRD_SCHEMA);
    }
    // searching for the word is faster than reading the `kind`, and most documents lack the word
    let (_, reason) = KINDS
        .iter()
        .find(|(kind, _)| document.contains(kind) && is_of_kind(document, &[kind]))?;
    Some(reason)
}
