//! The connected side as a source: registries for images, web servers for files.

mod file;
mod foreign_layer;
mod upstreams;

pub use file::expect_success;
pub use file::{expect_file, get_file, head_file};
pub use upstreams::Upstreams;
