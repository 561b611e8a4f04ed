//! The connected side as a source of content: registries for images, web servers for files.

mod file;
mod foreign;
mod source;

#[cfg(feature = "cli")]
pub(crate) use file::answered;
pub(crate) use file::{expect_file, get, head};
pub(crate) use source::Upstreams;
