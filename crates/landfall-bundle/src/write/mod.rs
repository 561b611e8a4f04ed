//! Writing: a bundle from a store, whole, in volumes, or one volume again; its packaging, and how
//! it is published.

mod add_signature;
mod checksums;
pub(crate) mod entries;
pub(crate) mod index_builder;
mod only_volume;
mod pack;
mod packaging;
pub(crate) mod partial_file;
pub(crate) mod publish;
mod remove;
pub(crate) mod sign;
pub(crate) mod volume_writer;

pub use add_signature::add_signature;
pub use only_volume::write_volume;
pub use pack::write_stream;
pub use pack::{PackedBundle, write_packaged, write_to};
pub use packaging::Packaging;
