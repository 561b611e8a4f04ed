//! Sets values in YAML text and keeps every other byte.
//!
//! - `merger.rs`: mappings and lists.
//! - `scalars.rs`: scalars, plain or base64. A scalar that contains YAML is merged like a document.
//! - `merge_keys.rs`: entries that a mapping inherits.
//! - `ordered.rs`: lists whose order matters, such as commands.
//! - `texts.rs`: certificates and systemd drop-ins.
//! - `no_proxy_lists.rs`: NO_PROXY lists, which are equal in all of a document.
//! - `facts.rs`: the values that may replace existing ones.
//! - `edits.rs`: the edits of the text, and the YAML of new values.

mod edits;
mod merger;
mod no_proxy_lists;
mod ordered;
mod scalars;
#[cfg(test)]
mod tests;

pub use self::edits::{MergeError, SiteFacts};
pub use self::merger::{DecodedText, MergeRules, ObjectPosition, documents, merge, objects};
