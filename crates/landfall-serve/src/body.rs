//! The body of a request or response.

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as HttpBody, Frame};

/// The error of a body, such as that of a connection, or of a limit.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body of any type.
pub(crate) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Returns `body` as a body of any type.
pub(crate) fn boxed_body<B>(body: B) -> Body
where
    B: HttpBody<Data = Bytes, Error: Into<BodyError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Returns a body of these bytes, whose length is known.
pub(crate) fn full_body(bytes: impl Into<Bytes>) -> Body {
    boxed_body(Full::new(bytes.into()))
}

/// Returns a body that consists of `pieces`. An error aborts the connection.
pub(crate) fn streamed_body<B, E>(pieces: impl Stream<Item = Result<B, E>> + Send + 'static) -> Body
where
    B: Into<Bytes> + 'static,
    E: Into<BodyError> + 'static,
{
    let frames = pieces.map(|piece| match piece {
        Ok(bytes) => Ok(Frame::data(bytes.into())),
        Err(error) => Err(error.into()),
    });
    StreamBody::new(frames).boxed_unsync()
}
