//! The format: the bytes of a bundle, without access to files. `docs/reference/bundle-format.md`
//! describes it byte by byte.
//!
//! From the inside out: [`stored`] (raw blocks), [`frame`] (zstd frames, made in a [`builder`] or
//! from a [`stream`]), [`header`] (tar headers), [`content_form`] (stored or compressed),
//! [`entry`] (one entry of the tar), [`frame_table`] (the hash of every frame), [`contents`] (the
//! contents index, and its [`check`]), [`base_name`] (the bases of a delta), [`blob_recipe`]
//! (recipes in place of blobs), [`signatures`] and [`footer`] (the bytes after the tar), [`files`]
//! (the names of the files of a bundle) and [`volume_size`].

pub(crate) mod base_name;
pub(crate) mod blob_recipe;
pub(crate) mod builder;
mod check;
mod check_recipes;
pub(crate) mod content_form;
pub(crate) mod contents;
pub(crate) mod damage;
pub(crate) mod entry;
pub(crate) mod files;
pub(crate) mod footer;
pub(crate) mod frame;
pub(crate) mod frame_buffers;
pub(crate) mod frame_table;
pub(crate) mod hash;
pub mod header;
pub(crate) mod loss;
pub(crate) mod names;
pub(crate) mod signatures;
pub(crate) mod stored;
pub(crate) mod stream;
pub(crate) mod volume_size;
