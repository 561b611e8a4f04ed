//! Describes a bundle as a CycloneDX document that links the SBOMs in the bundle.
//!
//! - `linked_documents.rs`: what the carried SBOMs and attestations are, and how they are named
//!   from outside.
//! - `component.rs`: one item of the lock as a component.
//! - `package.rs`: a package of a set as a component.
//! - `document.rs`: the whole document, the same for the same bundle.

mod component;
mod document;
mod linked_documents;
mod package;

pub use document::{SbomSubject, cyclonedx};
pub use linked_documents::{linked_documents, referrer_kind};
