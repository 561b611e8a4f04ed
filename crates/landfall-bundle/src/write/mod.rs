//! Writing: packs a bundle from a store, in one file or in volumes, rebuilds a single volume, and
//! publishes the files.

mod add_signature;
pub(crate) mod entry_writer;
pub(crate) mod pack;
pub(crate) mod publish;
mod rebuild_volume;
pub(crate) mod volume_writer;

pub use self::add_signature::add_signature;
pub use self::pack::{
    Packaging, PackedBundle, StreamTarget, write_packaged, write_stream, write_to,
};
pub use self::rebuild_volume::write_volume;
