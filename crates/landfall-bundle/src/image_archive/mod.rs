//! Writes the images of a lock as one archive that container runtimes can load.
//!
//! [`ImageArchive::plan`] selects the images and their names, and finds all images that cannot be
//! archived. [`ImageArchive::write`] streams the archive. Both formats are an OCI image layout in a
//! tar: [`ImageArchiveFormat::Oci`] has indexes of several platforms,
//! [`ImageArchiveFormat::Docker`] has one manifest of each image, and also `manifest.json` as
//! `docker save` writes it.

mod plan;
mod write;

pub use self::plan::{
    ImageArchive, ImageArchiveError, ImageArchiveFormat, ImageArchiveOptions, TrimmedImageIndex,
};
pub use self::write::is_image_archive;
