//! The store: an OCI image layout on disk, or a folder of an object store. Both resume interrupted
//! writes.

mod disk_content;
mod disk_gc;
mod disk_store;
mod error;
mod journal_file;
mod layout_index;
mod objects;
mod offered_blobs;
mod partial_file;
mod range_journal;
mod served_store;
mod state_files;
mod verified_journal;

pub use disk_gc::{DiskGc, DiskGcReport};
pub use disk_store::DiskStore;
pub use error::StoreError;
pub use layout_index::LayoutIndex;
#[cfg(any(test, feature = "testkit"))]
pub use objects::index_list;
pub use objects::{BucketGc, BucketGcReport, BucketStore, StoreTimeouts, SweptBlob};
pub use offered_blobs::OfferedBlobs;
pub use served_store::{ServedStore, ServedStoreError};
