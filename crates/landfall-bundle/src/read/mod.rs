//! Reading: opens a bundle, reads it by offset and verifies it, without ever extracting it.

pub(crate) mod bundle;
mod compare_lock;
mod entry_reader;
pub(crate) mod index;
mod object_part;
mod signers;
mod verified_blob_reader;
pub mod verify;
pub(crate) mod volume_reader;
pub(crate) mod volume_set;

pub use self::bundle::Bundle;
pub use self::signers::BundleSigner;
pub use self::verify::{VerifiedBundle, shard_parts, verify, verify_shard};
pub use self::volume_set::{UnopenedBundle, is_split, name_bad_volumes, volume_locations};
