//! The format: the bytes of a bundle, without access to files. `docs/reference/bundle-format.md`
//! describes it byte by byte.
//!
//! From the inside out: [`stored`] (raw blocks, from content or from a stream), [`frame`] (zstd
//! frames, and the table with the hash of each), [`header`] (tar headers), [`entry`] (one entry
//! of the tar), [`contents`] (the contents index, how a frame is built, and its [`check`]),
//! [`blob_recipe`] (recipes in place of blobs), [`footer`] (the bytes after the tar: signatures and
//! footer), [`names`] (of the files of a bundle and its bases), and [`damage`] (as checks find it).

pub(crate) mod blob_recipe;
mod check;
pub(crate) mod contents;
pub(crate) mod damage;
pub(crate) mod entry;
pub(crate) mod footer;
pub(crate) mod frame;
pub mod header;
pub(crate) mod names;
pub(crate) mod stored;
