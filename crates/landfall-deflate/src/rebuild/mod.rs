//! Rebuilds a stream from its plain bytes and its recipe.

mod member;
mod rebuilder;

pub use rebuilder::Rebuilder;
