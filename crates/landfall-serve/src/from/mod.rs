//! What a registry holds, offered from there: files and charts under their URLs, for a site that
//! keeps everything in its registry.

mod content;
mod error;
mod find;

pub use error::FromError;
pub use find::find;
