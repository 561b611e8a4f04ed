//! Describes a bundle as a CycloneDX document that links the SBOMs in the bundle.
//!
//! - `linked_documents.rs`: the kinds and identifiers of the SBOMs and attestations in the bundle.
//! - `component.rs`: one item of the lock as a component.
//! - `package.rs`: a package of a set as a component.
//! - `document.rs`: the whole document.

mod component;
mod document;

#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::document::fuzz;
pub use self::document::{SbomSubject, cyclonedx, linked_documents, referrer_kind};
