//! The store: an OCI image layout on disk, or a folder of an object store. Both resume interrupted
//! writes.

mod disk_content;
mod disk_gc;
mod disk_store;
#[cfg(test)]
mod frozen_journals;
mod layout_index;
mod objects;
mod offered_blobs;
mod partial_file;
mod served_store;
mod verified_journal;

pub use self::disk_gc::{DiskGc, DiskGcReport, GarbageFile};
pub use self::disk_store::{DiskStore, PUSHED_MARKER};
pub use self::layout_index::LayoutIndex;
#[cfg(any(test, feature = "testkit"))]
pub use self::objects::index_list;
pub use self::objects::{BucketGc, BucketGcReport, BucketStore, StoreTimeouts, SweptBlob};
pub use self::offered_blobs::OfferedBlobs;
pub use self::served_store::ServedStore;
pub use self::verified_journal::open_journal;
