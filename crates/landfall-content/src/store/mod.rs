//! KEEP IT. The store: on disk, an OCI image layout; or in an object store. Both resume what was
//! cut off.

mod content;
mod current;
mod disk;
mod error;
mod gc;
mod layout;
mod objects;
mod offered;
mod own_files;
mod partial;
mod ranges;
mod records;

pub use current::{Shelf, ShelfError};
pub use disk::Disk;
pub use error::StoreError;
pub use gc::{Swept, gc};
pub use layout::LayoutIndex;
#[cfg(any(test, feature = "testkit"))]
pub use objects::index_list;
pub use objects::{Blob, Collected, Objects, Patience, Sweep};
pub use offered::Offered;
