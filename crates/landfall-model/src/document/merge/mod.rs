//! Sets values in YAML text and keeps every other byte.
//!
//! - `merger.rs`: mappings and lists.
//! - `scalars.rs`: scalars, plain or base64. A scalar that contains YAML is merged like a document.
//! - `merge_keys.rs`: entries that a mapping inherits.
//! - `ordered.rs`: lists whose order matters, such as commands.
//! - `texts.rs`: certificates, systemd drop-ins and NO_PROXY lists.
//! - `edits.rs`: the edits of the text, and the YAML of new values.

mod edits;
mod error;
mod merge_keys;
mod merger;
mod ordered;
mod scalars;
#[cfg(test)]
mod tests;
mod texts;

pub use error::MergeError;
pub use merger::{DecodedText, MergeRules, documents, merge};
