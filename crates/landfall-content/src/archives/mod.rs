//! TAKE ALONG. Content from archives and layouts that other tools made, by digest:
//! [`Archive::open`] says what a path is, [`read_named`] what its images are called, and [`take`]
//! brings what is wanted of it into a sink.
//!
//! An archive is read once, from its beginning to its end, as a compressed one cannot be read
//! otherwise. Nothing in it is believed: names are labels, a member counts only by its digest, and
//! nothing is unpacked.

mod archive;
mod error;
mod file_names;
mod members;
mod named;
mod take;

pub use archive::Archive;
pub use error::ArchiveError;
pub use named::{Named, read_named};
pub use take::{Taken, has, take};
