//! The trait for sources of parts.

use super::EntryPart;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_http::{ByteStream, HttpError};

/// A source of parts: upstream (registries, web servers and git servers), or a store or bundle.
pub trait PartSource: Send + Sync {
    /// Returns the host that serves the part, or an empty string if it is read locally.
    fn host<'a>(&self, _part: &'a EntryPart) -> &'a str {
        ""
    }

    /// Opens the part at `offset`. The source may start earlier, see [`OpenedPart::start`].
    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>>;
}

/// A part that a source has opened.
pub struct OpenedPart {
    /// The offset at which the stream starts: 0 if the source cannot start elsewhere.
    pub start: u64,
    /// The bytes of the part from `start` on.
    pub stream: ByteStream,
    /// Whether the source has verified the bytes, or verifies them while they are read, so that
    /// they are not hashed again.
    pub is_checked: bool,
    /// Called if a blob that contains these bytes turns out wrong. The source answers differently
    /// afterwards, for example without ranges.
    pub on_corrupt: Option<OnCorrupt>,
}

/// Called if the bytes of a source turn out wrong.
pub type OnCorrupt = Box<dyn FnOnce() + Send>;

impl OpenedPart {
    /// Returns a stream whose bytes were not verified yet.
    pub fn unchecked(start: u64, stream: ByteStream) -> OpenedPart {
        OpenedPart {
            start,
            stream,
            is_checked: false,
            on_corrupt: None,
        }
    }

    /// Returns a stream whose bytes the source has verified, or verifies while they are read.
    pub fn checked(start: u64, stream: ByteStream) -> OpenedPart {
        OpenedPart {
            is_checked: true,
            ..OpenedPart::unchecked(start, stream)
        }
    }

    /// Returns the whole of a small part that is in memory, unverified.
    pub fn whole(bytes: Bytes) -> OpenedPart {
        OpenedPart::unchecked(0, futures_util::stream::iter([Ok(bytes)]).boxed())
    }

    /// Returns a stream that a server began at `start`. If `start` is not 0 and the bytes turn out
    /// wrong, `distrust` is called, which ends requests for ranges. A part made of two responses
    /// does not show which response was wrong, so the next attempt fetches the whole part.
    pub fn ranged(
        start: u64,
        stream: ByteStream,
        distrust: impl FnOnce() + Send + 'static,
    ) -> OpenedPart {
        let opened = OpenedPart::unchecked(start, stream);
        if start > 0 {
            opened.on_corrupt(distrust)
        } else {
            opened
        }
    }

    /// Sets the function that is called if these bytes turn out wrong.
    #[must_use]
    pub fn on_corrupt(self, act: impl FnOnce() + Send + 'static) -> OpenedPart {
        OpenedPart {
            on_corrupt: Some(Box::new(act)),
            ..self
        }
    }
}
