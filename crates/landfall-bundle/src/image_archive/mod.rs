//! Writes the images of a lock as one archive that container runtimes can load.
//!
//! [`ImageArchive::plan`] decides what goes in, under which names, and finds all that is in the
//! way. [`ImageArchive::write`] streams it. Both formats are an OCI image layout in a tar:
//! [`ImageArchiveFormat::Oci`] has indexes of several platforms, [`ImageArchiveFormat::Docker`] has
//! one manifest of each image and `manifest.json` too, as `docker save` writes it.

mod docker_manifest;
mod error;
mod image;
mod image_names;
mod layout;
mod plan;
mod write;

pub use error::ImageArchiveError;
pub use plan::{ImageArchive, ImageArchiveFormat, ImageArchiveOptions};
