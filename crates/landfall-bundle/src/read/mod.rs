//! Reading: opens a bundle, reads it by offset and verifies it, without ever extracting it.

mod bad_volumes;
pub(crate) mod bundle;
pub(crate) mod checksums;
mod compare_lock;
mod entry_reader;
mod frame_rows;
pub(crate) mod index;
mod lost_items;
mod object_part;
pub(crate) mod open_bundle;
mod repair;
mod sequential_reader;
mod signers;
mod verified_blob_reader;
pub mod verify;
pub(crate) mod volume_reader;
pub(crate) mod volume_set;
mod whole_blob_reader;
pub(crate) mod without_volume;

pub use bad_volumes::{UnopenedBundle, name_bad_volumes};
pub use bundle::Bundle;
pub use signers::BundleSigner;
pub use verify::{VerifiedBundle, verify};
pub use verify::{shard_parts, verify_shard};
pub use volume_set::{is_split, volume_locations};
