//! The format: the bytes of a bundle, without access to files. `docs/reference/bundle-format.md`
//! describes it byte by byte.
//!
//! From the inside out: [`stored`] (raw blocks), [`frame`] (zstd frames, made in a [`contents`] or
//! from a [`stored`]), [`header`] (tar headers), [`content_form`] (stored or compressed),
//! [`entry`] (one entry of the tar), [`frame`] (the hash of every frame), [`contents`] (the
//! contents index, and its [`check`]), [`names`] (the bases of a delta), [`blob_recipe`]
//! (recipes in place of blobs), [`footer`] and [`footer`] (the bytes after the tar), [`names`]
//! (the names of the files of a bundle) and [`names`].

pub(crate) mod blob_recipe;
mod check;
pub(crate) mod content_form;
pub(crate) mod contents;
pub(crate) mod damage;
pub(crate) mod entry;
pub(crate) mod footer;
pub(crate) mod frame;
pub(crate) mod hash;
pub mod header;
pub(crate) mod names;
pub(crate) mod stored;
