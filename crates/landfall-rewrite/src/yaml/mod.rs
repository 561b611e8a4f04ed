//! YAML documents as trees of nodes with their byte ranges in the text
//! (`landfall_model::document`), read by one of two readers: `simple` reads nearly all documents,
//! the general parser the others.

mod documents;
mod fingerprint;
mod simple;
#[cfg(test)]
mod tests;

pub(super) use self::documents::{
    documents, documents_in, position_of, scalar_of, stream_parts, text_of, value_of,
};
pub(super) use self::fingerprint::{ParseFingerprint, stays_plain};
pub(super) use landfall_model::document::{
    ScalarStyle, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
    comment_spans,
};
