//! POINT TO IT. Where each locked item goes, and how references to it are rewritten.

mod mapping;

pub(crate) use mapping::host_component;
pub use mapping::{Collision, Destination, Mapping, Target, TargetError, file_repository, file_tag};
