//! Writes a bundle directly from upstream, without a second copy of the stored blobs.
//!
//! The lock determines the offsets of stored blobs, so their bytes are written to their final
//! offsets in `OUT.partial` while they arrive, in any order ([`sink`]).
//! Blobs to be compressed follow them in the file, and pass through a spool ([`compress`]).
//! The [`journal`] and the spool are in `OUT.partial.work`. The result has the same bytes as the
//! bundle that `pack` makes from a store.
//!
//! Blobs that must be compressed are downloaded first, in the order of the plan, into a spool that
//! is a store of its own; one thread compresses entry after entry, and removes the spool's copy
//! once the entry is on disk and in the journal. The journal is not trusted: the content of an
//! earlier run is hashed again, blob by blob.

mod compress;
mod direct_bundle;
mod journal;
mod sink;

pub use self::direct_bundle::{DirectBundle, DirectStart};
