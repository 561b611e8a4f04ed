//! Bodies that report their progress: a request body reports when it waits for the client, and a
//! response body records the completed request.

use super::access_log::{CompletedRequest, RequestInfo, UserName};
use super::metrics::RequestObserver;
use crate::body::{Body, BodyError, boxed_body};
use crate::connections::{RequestGuard, RequestPermit};
use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of a request.
pub(crate) struct TrackedRequestBody<F> {
    body: Incoming,
    on_wait: F,
}

impl<F: Fn()> TrackedRequestBody<F> {
    /// Calls `on_wait` whenever the next bytes have not arrived yet.
    pub(crate) fn new(body: Incoming, on_wait: F) -> TrackedRequestBody<F> {
        TrackedRequestBody { body, on_wait }
    }
}

impl<F: Fn() + Unpin> HttpBody for TrackedRequestBody<F> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let result = Pin::new(&mut self.body).poll_frame(context);
        if result.is_pending() {
            (self.on_wait)();
        }
        result
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response. Dropping it records the request as completed and releases its guard and
/// permit, whether the body was sent completely or aborted.
pub(crate) struct ObservedResponseBody {
    body: Body,
    request: RequestInfo,
    user: Option<UserName>,
    status: StatusCode,
    bytes: u64,
    observer: Arc<RequestObserver>,
    _guard: RequestGuard,
    _permit: Option<RequestPermit>,
}

impl ObservedResponseBody {
    /// Wraps the body of `response`. The new body holds `guard` and `permit` up to its end.
    pub(crate) fn wrap(
        mut response: Response<Body>,
        request: RequestInfo,
        observer: Arc<RequestObserver>,
        guard: RequestGuard,
        permit: Option<RequestPermit>,
    ) -> Response<Body> {
        // removed: extensions are for the server, not for the connection
        let user = response.extensions_mut().remove();
        let status = response.status();
        response.map(|body| {
            boxed_body(ObservedResponseBody {
                body,
                request,
                user,
                status,
                bytes: 0,
                observer,
                _guard: guard,
                _permit: permit,
            })
        })
    }
}

impl HttpBody for ObservedResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ObservedResponseBody {
    fn drop(&mut self) {
        // on drop, because hyper drops the body both at its end and when the client disconnects
        self.observer.record(&CompletedRequest {
            request: &self.request,
            user: self.user.as_ref().map(|user| user.0.as_str()),
            status: self.status,
            bytes: self.bytes,
            duration: self.request.received.elapsed(),
        });
    }
}
