//! Where parts are read from.

use super::EntryPart;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_http::{ByteStream, HttpError};

/// Where parts are read from: registries and web servers, or a store or bundle.
pub trait PartSource: Send + Sync {
    /// The host that a part is waited for; empty if it is read here.
    fn host<'a>(&self, _part: &'a EntryPart) -> &'a str {
        ""
    }

    /// Opens the part at `offset`.
    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>>;
}

/// A part that was opened.
pub struct OpenedPart {
    /// The offset at which the stream really starts: 0 where the source cannot start elsewhere.
    pub start: u64,
    /// The bytes.
    pub stream: ByteStream,
    /// Whether the bytes were checked when they came in, and are guarded since.
    pub is_checked: bool,
    /// What the source does when content with these bytes in it turns out wrong. It answers
    /// otherwise afterwards.
    pub on_wrong: Option<OnCorrupt>,
}

/// What a source does when its bytes turn out wrong.
pub type OnCorrupt = Box<dyn FnOnce() + Send>;

impl OpenedPart {
    /// Bytes that were not checked yet.
    pub fn unchecked(start: u64, stream: ByteStream) -> OpenedPart {
        OpenedPart {
            start,
            stream,
            is_checked: false,
            on_wrong: None,
        }
    }

    /// Bytes that are known to be right, or break off before their end.
    pub fn checked(start: u64, stream: ByteStream) -> OpenedPart {
        OpenedPart {
            is_checked: true,
            ..OpenedPart::unchecked(start, stream)
        }
    }

    /// The whole of a small part.
    pub fn whole(bytes: Bytes) -> OpenedPart {
        OpenedPart::unchecked(0, futures_util::stream::iter([Ok(bytes)]).boxed())
    }

    /// With what the source does when these bytes turn out wrong.
    #[must_use]
    pub fn on_wrong(self, act: impl FnOnce() + Send + 'static) -> OpenedPart {
        OpenedPart {
            on_wrong: Some(Box::new(act)),
            ..self
        }
    }
}
