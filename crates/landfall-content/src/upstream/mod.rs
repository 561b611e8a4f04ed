//! The connected side as a source of content: registries for images, web servers for files.

mod file;
mod foreign;
mod source;

pub use file::answered;
pub use file::{expect_file, get, head};
pub use source::Upstreams;
