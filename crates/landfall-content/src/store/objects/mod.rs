//! The store in a folder of an object store. Any number of processes on any machines can use it at
//! the same time: content by digest needs no coordinator, because two writers of one digest write
//! the same bytes.
//!
//! The keys and their content:
//!
//! - `blobs/<algorithm>/<hex>`: a blob; it gets this key only after its digest was verified.
//! - `uploads/<algorithm>/<hex>`: the record of an upload in progress, with which any process can
//!   resume it.
//! - `index/<hex>`: an immutable list of present blobs, which a run reads instead of listing keys.
//! - `claims/<hex>-<hour>`: a lock, by its fingerprint, that runs used in this hour; `gc` keeps its
//!   blobs.
//! - `condemned/<hex>`: a list of blobs that `gc` found unused, or that were damaged or missing.
//!   Runs consider them absent, and a later `gc` deletes them.
//! - `deleting/<hex>-<any>`: a list of blobs that a `gc` is deleting; runs that need one of them
//!   wait.

mod bucket_store;
mod content;
mod gc;
mod sink;
mod upload_record;

pub(super) use self::bucket_store::unreadable;
pub use self::bucket_store::{BucketStore, StoreTimeouts};
#[cfg(any(test, feature = "testkit"))]
pub use self::content::index_list;
pub use self::gc::{BucketGc, BucketGcReport, SweptBlob};
