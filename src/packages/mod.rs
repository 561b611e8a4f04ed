//! WHAT A PACKAGE REPOSITORY IS, without network: its signed metadata, versions, and the choice of packages with what they
//! depend on. `apt/` knows Debian's repositories, and `yum/` those of RPM.

pub(crate) mod apt;
mod changelog;
mod decompress;
mod error;
mod identity;
mod path;
pub(crate) mod yum;

pub(crate) use decompress::{COMPRESSIONS, Compression, decompress, decompressed};
pub(crate) use error::PackagesError;
pub(crate) use identity::PackageIdentity;
pub(crate) use path::{file_url, is_plain_path};
