//! The connected side as a source of content: registries for images, web servers for files.

mod foreign;
mod source;

pub use source::{UploadFeed, Upstreams, expect_file, get};
