//! Blobs from archives and layouts that other tools made, by digest. [`SourceArchive::open`]
//! detects the format of a path, [`read_image_names`] reads the names of its images, and
//! [`import_blobs`] copies the blobs that a lock needs into a store. An [`ImageInArchive`] is one
//! image that a manifest takes from an archive, which is read again for each of its blobs.
//!
//! Otherwise, an archive is read once from beginning to end, because a compressed one cannot be
//! read otherwise. Nothing in it is trusted: names are only labels, members are identified by their
//! digests, and nothing is unpacked.

mod archived_images;
mod image_in_archive;
mod image_names;
mod import_blobs;
mod members;
mod source_archive;

pub(crate) use self::archived_images::ArchivedImages;
pub use self::image_in_archive::ImageInArchive;
pub use self::image_names::{ArchiveImages, read_image_names};
pub use self::import_blobs::{ImportedBlobs, find_blobs, import_blobs};
pub use self::source_archive::SourceArchive;
