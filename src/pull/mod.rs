//! Downloads everything that a lock lists into a store or a bundle.
//!
//! Manifests and blobs have separate queues and slots; the entry with the largest blob comes first.
//! When the last blob has started, idle slots of its queue serve the remaining manifests. When
//! every transfer has started, idle slots help with blobs of 64 MiB and more: each helper downloads
//! the largest range that is missing, which is often the second half of the range of another
//! connection. The first connection reads in order and hashes. A journal next to the partial file
//! records the ranges, so a kill loses at most 4 MiB of each connection.
//!
//! With `--shard`, a pull downloads only the parts of the lock that belong to its shard. It adds
//! the name of an item to the layout only if all parts of the item belong to the shard. `pack` adds
//! the other names after it has found all parts.

mod outcome;
mod run;
mod signatures;
#[cfg(test)]
mod together;

pub(crate) use self::run::{ShardShare, pull};
pub(crate) use self::signatures::{check_packages, check_signatures};
