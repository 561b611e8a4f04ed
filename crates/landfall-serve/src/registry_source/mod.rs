//! What a registry holds, offered from there: files and charts under their URLs, for a site that
//! keeps everything in its registry.

mod content;
mod delivered;
mod error;

pub use delivered::{DeliveredContent, find_delivered};
pub use error::RegistrySourceError;
