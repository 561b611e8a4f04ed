//! Package repositories of apt and dnf, without network access: parses their signed metadata,
//! compares versions, and selects packages with their dependencies. The crate can be used on its
//! own.
//!
//! [`apt`] reads Debian repositories (`Release`, `Packages`) and selects packages as apt does.
//! [`yum`] reads RPM repositories (`repomd.xml`, `primary.xml`, modules) and selects packages with
//! a solver that follows libsolv's rules and policies.
//!
//! The crate imports `landfall-model`. Begin with `apt/choose.rs` and `yum/solve/mod.rs`.

pub mod apt;
mod changelog;
mod decompress;
mod error;
mod path;
pub mod yum;

pub use crate::decompress::{COMPRESSIONS, Compression, decompress, decompressed};
pub use crate::error::PackageIdentity;
pub use crate::path::{file_url, host_of, is_location, is_plain_path, location};
