//! A plain file, carried as an OCI artifact. The file is the first layer; its checksum files and
//! signatures are the other layers.

mod kind;
mod locked;
mod manifest_entry;
mod resolvable;
mod resolve;
mod signature_lookup;

pub use self::kind::file_repository;
pub(crate) use self::kind::{entry, is_file_url};
pub use self::locked::{LockedFile, LockedSidecar, UrlFile};
pub(crate) use self::manifest_entry::{FileEntry, file_url, url_of};
pub use self::resolvable::FileRequest;
pub(crate) use self::resolve::{download, download_sidecar};
pub(crate) use self::signature_lookup::{ensure_stored, is_absent, read_sidecar};
