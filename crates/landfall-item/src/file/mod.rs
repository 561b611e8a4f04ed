//! A plain file: an OCI artifact of one layer; its checksum files are further layers.

mod checksum;
mod kind;
mod locked;
mod parts;
mod resolve;
mod wish;
mod written;

pub(crate) use kind::is_file_url;
pub use locked::{File, Sidecar};
pub use parts::file_repository;
