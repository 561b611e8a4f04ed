//! HAND IT ON. The images of a lock as one archive that container runtimes load as it is.
//!
//! [`Archive::plan`] decides what goes in, under which names, and finds all that is in the way.
//! [`Archive::write`] streams it. Both formats are an OCI image layout in a tar: [`Format::Oci`]
//! has indexes of several platforms, [`Format::Docker`] has one manifest of each image and
//! `manifest.json` too, as `docker save` writes it.

mod docker;
mod error;
mod image;
mod layout;
mod names;
mod plan;
mod write;

pub use error::ArchiveError;
pub use plan::{Archive, Asked, Format};
