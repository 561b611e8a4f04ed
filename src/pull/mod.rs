//! GET IT. Everything that a lock names, into the store.
//!
//! Manifests and blobs have queues and slots of their own, blobs the largest first. When the last
//! blob has started, idle slots of its queue serve the manifests that are left. When every
//! transfer has started, idle slots help with blobs of 64 MiB and more: each helper downloads the
//! second half of the largest range that another one still has to do. The first connection goes in
//! order and hashes. A journal next to the partial file records the ranges, so a kill loses at
//! most 4 MiB of each connection.
//!
//! With `--shard`, a pull gets the entries of the lock with only the parts of its shard. A pull
//! adds to the layout only the names of items that are all its own; `pack` adds the rest, after it
//! has found all of it.

mod run;
mod share;
mod signatures;
#[cfg(test)]
mod together;

pub use run::PullError;
pub(crate) use run::pull;
pub(crate) use share::ShardShare;
pub(crate) use signatures::check_packages;
