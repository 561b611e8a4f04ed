//! KEEP IT. The store: on disk, an OCI image layout; or in an object store. Both resume what was cut off.

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

pub(crate) use current::{Shelf, ShelfError};
pub use disk::Disk;
pub use error::StoreError;
pub(crate) use gc::{Swept, gc};
pub(crate) use layout::LayoutIndex;
pub(crate) use objects::{Blob, Collected, Objects, Patience, Sweep};
pub(crate) use offered::Offered;
