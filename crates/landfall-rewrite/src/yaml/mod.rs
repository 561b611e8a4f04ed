//! YAML documents as trees of nodes with their byte ranges in the text
//! (`landfall_model::document`), read by one of two readers: `simple` reads nearly all documents,
//! the general parser the others.

mod documents;
mod entries;
mod fingerprint;
mod plain_text;
mod simple;
mod stream_parts;
#[cfg(test)]
mod tests;

pub(super) use documents::{documents, documents_in};
pub(super) use entries::{position_of, scalar_of, text_of, value_of};
pub(super) use fingerprint::ParseFingerprint;
pub(super) use landfall_model::document::{
    ScalarStyle, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
    comment_spans,
};
pub(super) use plain_text::stays_plain;
pub(super) use stream_parts::stream_parts;
