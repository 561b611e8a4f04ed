//! A plain file, carried as an OCI artifact. The file is the first layer; its checksum files and
//! signatures are the other layers.

mod checksum;
mod kind;
mod locked;
mod manifest_entry;
mod parts;
mod request;
mod resolvable;
mod resolve;
mod signature_lookup;
mod signatures;

pub(crate) use kind::is_file_url;
pub use locked::{LockedFile, LockedSidecar};
pub(crate) use manifest_entry::{FileEntry, file_url};
pub use parts::file_repository;
pub use request::FileRequest;
pub(crate) use resolve::download;
pub(crate) use signature_lookup::{ensure_stored, is_absent};
pub use signatures::FileSignatureError;
pub(crate) use signatures::read_sidecar;
