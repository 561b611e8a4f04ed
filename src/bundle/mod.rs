//! CARRY IT. The bundle: one `.tar.zst` that is also an OCI image layout, readable by offset.
//!
//! `docs/bundle-format.md` draws the format byte by byte. Each room imports only those before it:
//!
//! 1. [`format`](self::format): bytes without files;
//! 2. [`plan`]: what goes in, in which order, and what a delta leaves out;
//! 3. [`read`]: open, read by offset, verify;
//! 4. [`write`](self::write()): from a store, in one file or in volumes;
//! 5. [`direct`]: the same file straight from upstream.
//!
//! [`error`] and [`pipeline`] (work in order on several threads) serve all of them; `testkit` is for tests and fuzz
//! targets.

mod direct;
mod error;
mod format;
mod pipeline;
mod plan;
mod read;
#[cfg(any(test, fuzzing))]
pub(crate) mod testkit;
mod write;

pub(crate) use direct::{DirectBundle, Start};
pub use error::Error;
pub(crate) use format::base::BaseName;
pub use format::contents::{PackOptions, Serial};
pub(crate) use format::header as tar_header;
pub use format::volume_size::VolumeSize;
pub(crate) use plan::Base;
pub use plan::PackPlan;
pub use read::{Bundle, SignedBy, Verified, verify};
pub(crate) use read::{Unopened, is_split, name_bad_volumes, places_of};
pub(crate) use read::{own_parts, verify_shard};
#[cfg(any(test, fuzzing))]
pub(crate) use testkit::fuzz;
pub use write::{Packaging, PackedBundle, add_signature, write_packaged, write_to};
pub(crate) use write::{write_stream, write_volume};
