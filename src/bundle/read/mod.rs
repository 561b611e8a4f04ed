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
pub(crate) mod open_bundle;
mod signed_by;
mod stored_blob_reader;
pub(crate) mod verify;
pub(crate) mod volume_reader;
pub(crate) mod volume_set;
pub(crate) mod without_volume;

pub(crate) use bad_volumes::{Unopened, name_bad_volumes};
pub use bundle::Bundle;
pub use signed_by::SignedBy;
pub use verify::{Verified, verify};
pub(crate) use verify::{own_parts, verify_shard};
pub(crate) use volume_set::{is_split, places_of};
