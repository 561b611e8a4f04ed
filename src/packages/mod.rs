//! What repositories of OS packages are, without any network: their indexes, versions and signatures, and the choice
//! of packages with all that they depend on.
#![allow(dead_code, unused_imports, reason = "the kind of item that uses all of it comes next")]

mod decompress;
pub(crate) mod yum;

pub(crate) use decompress::{Compression, decompressed, unpacked};
