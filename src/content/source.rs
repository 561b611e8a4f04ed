//! Where parts are read from.

use super::Part;
use crate::http::{ByteStream, Error};
use crate::model::Limits;
use futures_util::future::BoxFuture;

/// Where parts are read from: registries and web servers, or a store or bundle.
pub trait Source: Send + Sync {
    /// The part from `offset` on, and the offset at which the stream really starts: 0 where the source
    /// cannot start elsewhere. The bytes need not have been checked.
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<(u64, ByteStream), Error>>;

    /// Whether the bytes were checked when they came in, and are guarded since.
    fn is_checked(&self) -> bool;

    /// Attempts and pauses between them.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// The part went on in the middle and came out wrong: its host is asked for no range again.
    fn distrust_ranges<'a>(&'a self, _part: &'a Part) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
