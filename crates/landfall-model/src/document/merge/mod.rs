//! Sets values in YAML text and keeps every other byte.
//!
//! - `merger.rs`: mappings and lists, also with entries that a mapping inherits.
//! - `scalars.rs`: scalars, plain or base64. A scalar that contains YAML is merged like a document,
//!   and certificates and systemd drop-ins by their own rules.
//! - `ordered.rs`: lists whose order matters, such as commands.
//! - `no_proxy_lists.rs`: NO_PROXY lists, which are equal in all of a document.
//! - `edits.rs`: the edits of the text, the YAML of new values, the facts of the site that may
//!   replace existing values, and the errors.

mod edits;
mod merger;
mod no_proxy_lists;
mod ordered;
mod scalars;
#[cfg(test)]
mod tests;

pub use self::edits::{MergeError, SiteFacts};
pub use self::merger::{DecodedText, MergeRules, ObjectPosition, documents, merge, objects};
