//! The store in an object store. Any number of processes, on any machines, may use one at once:
//! content by digest needs no coordinator, as two writers of one digest write the same bytes.
//!
//! | key | what |
//! |---|---|
//! | `blobs/sha256/<hex>` | content, under this name only after its digest was checked |
//! | `uploads/sha256/<hex>` | the record of an upload under way, by which any process resumes it |
//! | `index/<hex>` | a list of content that is there, written once: a run reads these in place of a listing |
//! | `claims/<hex>-<hour>` | the lock of the runs of an hour, by its fingerprint: `gc` keeps what it names |
//! | `condemned/<hex>` | a list of content that `gc` found unused, and that a later `gc` deletes |
//! | `deleting/<hex>-<any>` | a list of content that a `gc` is deleting: runs that want some of it wait |

mod blob_list;
mod bucket_store;
mod claims;
mod content;
mod gc;
mod keys;
mod pull_target;
mod sink;
mod store_timeouts;
mod upload_record;

#[cfg(any(test, feature = "testkit"))]
pub use blob_list::index_list;
pub use bucket_store::BucketStore;
pub use gc::{BucketGc, BucketGcReport, SweptBlob};
pub use store_timeouts::StoreTimeouts;
