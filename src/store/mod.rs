//! KEEP IT. The store on disk: an OCI image layout that resumes what was cut off.

mod content;
mod disk;
mod error;
mod gc;
mod layout;
mod own_files;
mod partial;
mod ranges;
mod records;

pub use disk::Disk;
pub use error::StoreError;
pub(crate) use gc::{Swept, gc};
pub(crate) use layout::LayoutIndex;
