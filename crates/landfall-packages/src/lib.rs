//! Package repositories of apt and dnf, without network: signed metadata, versions, and the choice
//! of packages with their dependencies. It is of use by itself.
//!
//! [`apt`] has Debian's repositories: `Release`, `Packages`, and a choice that follows apt's.
//! [`yum`] has those of RPM: `repomd.xml`, `primary.xml`, modules, and a solver that follows
//! libsolv's rules and policies.
//!
//! It imports `landfall-model`. Begin with `apt/choose.rs` and `yum/solve/mod.rs`.

pub mod apt;
mod changelog;
mod decompress;
mod error;
mod identity;
mod path;
pub mod yum;

pub use decompress::{COMPRESSIONS, Compression, decompress, decompressed};
pub use error::PackagesError;
pub use identity::PackageIdentity;
pub use path::{file_url, is_plain_path};
