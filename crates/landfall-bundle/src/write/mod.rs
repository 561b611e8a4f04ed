//! Writing: packs a bundle from a store, in one file or in volumes, rebuilds a single volume, and
//! publishes the files.

mod add_signature;
mod checksums;
pub(crate) mod entry_writer;
pub(crate) mod index_builder;
mod old_files;
mod pack;
mod packaging;
pub(crate) mod partial_file;
pub(crate) mod publish;
mod rebuild_volume;
pub(crate) mod sign;
pub(crate) mod volume_writer;

pub use add_signature::add_signature;
pub use pack::{PackedBundle, write_packaged, write_to};
pub use pack::{StreamTarget, write_stream};
pub use packaging::Packaging;
pub use rebuild_volume::write_volume;
