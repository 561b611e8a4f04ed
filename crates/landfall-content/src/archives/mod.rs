//! TAKE ALONG. Content from archives and layouts that other tools made, by digest:
//! [`SourceArchive::open`] says what a path is, [`read_image_names`] what its images are called,
//! and [`import_blobs`] brings what is wanted of it into a sink.
//!
//! An archive is read once, from its beginning to its end, as a compressed one cannot be read
//! otherwise. Nothing in it is believed: names are labels, a member counts only by its digest, and
//! nothing is unpacked.

mod error;
mod file_names;
mod image_names;
mod import_blobs;
mod members;
mod source_archive;

pub use error::SourceArchiveError;
pub use image_names::{ArchiveImages, read_image_names};
pub use import_blobs::{ImportedBlobs, find_blobs, import_blobs};
pub use source_archive::SourceArchive;
