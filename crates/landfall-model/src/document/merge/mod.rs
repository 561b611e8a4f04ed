//! Sets values in YAML text and keeps every other byte.
//!
//! - `merger.rs`: mappings and lists.
//! - `scalars.rs`: texts in scalars: YAML in them is merged as outside of them, in base64 too.
//! - `ordered.rs`: lists whose order matters, such as commands.
//! - `texts.rs`: certificates, systemd drop-ins and NO_PROXY lists.
//! - `edits.rs`: YAML for new values, and the edits of the text.
//! - `error.rs`: why values cannot be set.

mod edits;
mod error;
mod merger;
mod ordered;
mod scalars;
#[cfg(test)]
mod tests;
mod texts;

pub use error::MergeError;
pub use merger::{DecodedText, MergeRules, documents, merge};
