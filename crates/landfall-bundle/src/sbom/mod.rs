//! Describes a bundle as a CycloneDX document that links the SBOMs in the bundle.
//!
//! - `component.rs`: one item of the lock, or one package of a set, as a component.
//! - `document.rs`: the whole document, with the SBOMs and attestations that the bundle links.

mod component;
mod document;

#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::document::fuzz;
pub use self::document::{SbomSubject, cyclonedx, linked_documents, referrer_kind};
