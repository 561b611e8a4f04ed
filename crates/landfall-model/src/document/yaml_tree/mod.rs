//! YAML documents as trees whose nodes know their bytes in the text.
//!
//! Values are read by `yaml`, which has no positions. All code that needs positions uses this
//! tree: messages that point at a value, merges and rewrites that keep every other byte, and
//! audits.
//!
//! - `node.rs`: the nodes, the bytes to replace when a value gets a new text, and the node that a
//!   message is about.
//! - `documents.rs`: the documents of a stream, read from the parser's events.

mod documents;
mod node;

pub(super) use self::documents::document_roots;
pub use self::documents::{NotYaml, YamlDocuments, comment_spans};
pub use self::node::{
    YamlAlias, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
    anchored_scalar,
};
pub use granit_parser::ScalarStyle;
