//! A bundle straight from upstream, with no second copy of a stored blob.
//!
//! The lock alone says where stored blobs lie, so they go to their places in `OUT.partial` while
//! they arrive, in any order ([`sink`], [`stored_blob_writer`]). What must be compressed comes after
//! them, and passes through a spool ([`compress`]). [`journal`] and spool lie in
//! `OUT.partial.work`. The file is the one that [`write()`](crate::write()) makes from a store.
//!
//! Blobs that must be compressed are downloaded first, in the order of the plan, into a spool that
//! is a store of its own; one thread compresses entry after entry, and removes the spool's copy
//! once the entry is on disk and in the journal. The journal only says where to look: what an
//! earlier run left is hashed again, blob by blob.

mod begin;
mod compress;
mod direct_bundle;
mod finish;
mod journal;
mod reused_bundle;
mod sink;
mod stored_blob_writer;
mod stored_offsets;

pub use begin::DirectStart;
pub use direct_bundle::DirectBundle;
