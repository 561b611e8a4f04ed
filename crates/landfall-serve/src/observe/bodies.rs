//! Bodies that tell how they fare: of a request, whether its client stands still; of an answer, how
//! much of it left, for the access log and the metrics.

use super::observer::Observer;
use super::request::{Caller, Ended, User};
use crate::connections::{Busy, Ticket};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Response, StatusCode};
use hyper::body::{Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of a request.
pub(in super::super) struct AwaitedBody<F> {
    body: Incoming,
    awaits: F,
}

impl<F: Fn()> AwaitedBody<F> {
    /// Calls `awaits` when the next bytes are not there yet.
    pub(in super::super) fn new(body: Incoming, awaits: F) -> AwaitedBody<F> {
        AwaitedBody { body, awaits }
    }
}

impl<F: Fn() + Unpin> HttpBody for AwaitedBody<F> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let result = Pin::new(&mut self.body).poll_frame(context);
        if result.is_pending() {
            (self.awaits)();
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

/// The body of an answer. What it holds is given back when it ends, or is broken off.
pub(in super::super) struct ObservedBody {
    body: Body,
    caller: Caller,
    user: Option<User>,
    status: StatusCode,
    bytes: u64,
    observer: Arc<Observer>,
    _busy: Busy,
    _ticket: Option<Ticket>,
}

impl ObservedBody {
    /// The response, which holds `busy` and `ticket` up to its last byte.
    pub(in super::super) fn wrap(
        mut response: Response<Body>,
        caller: Caller,
        observer: Arc<Observer>,
        busy: Busy,
        ticket: Option<Ticket>,
    ) -> Response<Body> {
        let (user, status) = (response.extensions_mut().remove(), response.status());
        let wrap = |body| {
            Body::new(ObservedBody {
                body,
                caller,
                user,
                status,
                bytes: 0,
                observer,
                _busy: busy,
                _ticket: ticket,
            })
        };
        response.map(wrap)
    }
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
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

impl Drop for ObservedBody {
    fn drop(&mut self) {
        let user = self.user.as_ref().map(|user| user.0.as_str());
        let (caller, took) = (&self.caller, self.caller.begun.elapsed());
        self.observer.ended(&Ended {
            caller,
            user,
            status: self.status,
            bytes: self.bytes,
            took,
        });
    }
}
