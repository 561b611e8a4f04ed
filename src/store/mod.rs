//! KEEP IT. The store on disk: an OCI image layout that resumes what was cut off.

mod disk;
mod gc;
mod layout;
mod partial;
mod ranges;
mod records;

pub use disk::Disk;
pub use gc::{Removed, Swept, Waste, gc};
pub use layout::LayoutIndex;
