//! YAML with byte spans: documents as trees of nodes that know where their scalars stand. `simple`
//! reads nearly all documents; `granit`, ten times slower, reads all of YAML.

mod documents;
mod fingerprint;
mod granit;
mod node;
mod parts;
mod plain_text;
mod simple;
#[cfg(test)]
mod tests;

pub(super) use documents::{documents, documents_in};
pub(super) use fingerprint::ParseFingerprint;
pub(super) use granit::comments;
pub(super) use node::{Document, Entry, Node, Scalar, member, text, value};
pub(super) use parts::parts;
pub(super) use plain_text::stays_plain;
