//! Reading: a bundle is opened, read by offset and verified; it is never extracted.

mod against_lock;
mod bad_volumes;
mod blob_reader;
pub(crate) mod bundle;
pub(crate) mod checksums;
mod entry_reader;
mod frame_rows;
pub(crate) mod index;
mod lost_items;
mod mend;
mod object_part;
pub(crate) mod open_bundle;
mod signed_by;
mod stored_blob_reader;
mod stretch;
pub mod verify;
pub(crate) mod volume_reader;
pub(crate) mod volume_set;
pub(crate) mod without_volume;

pub use bad_volumes::{UnopenedBundle, name_bad_volumes};
pub use bundle::Bundle;
pub use signed_by::BundleSigner;
pub use verify::{VerifiedBundle, verify};
pub use verify::{shard_parts, verify_shard};
pub use volume_set::{is_split, volume_locations};
