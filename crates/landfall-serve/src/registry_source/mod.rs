//! Serves all items except images from a registry (`--from`), under their URLs: for a site that
//! keeps everything in its registry.

mod delivered;
mod registry_blobs;

pub use self::delivered::{DeliveredContent, find_delivered};
