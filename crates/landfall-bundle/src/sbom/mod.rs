//! Describes a bundle as a CycloneDX document that links the SBOMs in the bundle.
//!
//! - `linked_documents.rs`: the kinds and identifiers of the SBOMs and attestations in the bundle.
//! - `component.rs`: one item of the lock as a component.
//! - `package.rs`: a package of a set as a component.
//! - `document.rs`: the whole document.

mod component;
mod document;
mod linked_documents;
mod package;

pub use document::{SbomSubject, cyclonedx};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use linked_documents::fuzz;
pub use linked_documents::{linked_documents, referrer_kind};
