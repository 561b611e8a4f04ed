//! Observes requests: the access log, the metrics, and what clients asked for in vain.

mod access_log;
mod misses;

use self::access_log::{CompletedRequest, combined_log_line};
use self::misses::MissList;
use crate::body::{Body, BodyError, boxed_body};
use crate::connections::{RequestGuard, RequestPermit, TrackedConnection};
use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use jiff::Timestamp;
use landfall_model::locked;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

pub use self::access_log::{AccessLog, LogTarget};
pub(crate) use self::access_log::{RequestInfo, UserName};
pub(crate) use self::misses::Miss;

/// Counters of the running server.
#[derive(Default)]
pub(crate) struct ServerMetrics {
    /// Completed requests by method and status.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    pub(crate) bytes_sent: AtomicU64,
    /// The duration of all requests together, in microseconds.
    micros: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) redirects: AtomicU64,
}

impl ServerMetrics {
    fn record(&self, completed: &CompletedRequest<'_>) {
        // clients may invent methods, which must not become time series of their own
        let method = match completed.request.method.as_str() {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "PUT" => "PUT",
            "POST" => "POST",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "other",
        };
        let key = (method, completed.status.as_u16());
        *locked(&self.requests).entry(key).or_default() += 1;
        self.bytes_sent
            .fetch_add(completed.bytes, Ordering::Relaxed);
        self.micros
            .fetch_add(completed.duration.as_micros() as u64, Ordering::Relaxed);
    }

    /// The number of completed requests by method and status.
    pub(crate) fn requests(&self) -> BTreeMap<(&'static str, u16), u64> {
        locked(&self.requests).clone()
    }

    /// The duration of all requests together, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64()
    }
}

/// The metrics, the misses, and the access log if there is one.
pub(crate) struct RequestObserver {
    pub(crate) metrics: ServerMetrics,
    pub(crate) misses: MissList,
    pub(crate) log: Option<AccessLog>,
}

impl RequestObserver {
    pub(crate) fn new(log: Option<AccessLog>) -> RequestObserver {
        RequestObserver {
            metrics: ServerMetrics::default(),
            misses: MissList::default(),
            log,
        }
    }

    /// Counts the request and writes its log line.
    fn record(&self, completed: &CompletedRequest<'_>) {
        self.metrics.record(completed);
        if let Some(log) = &self.log {
            log.write(combined_log_line(completed, Timestamp::now()));
        }
    }
}

/// The body of a request. It tells the connection when the next bytes have not arrived yet, and
/// when the rest of the body will not be read.
pub(crate) struct TrackedRequestBody {
    body: Incoming,
    connection: Arc<TrackedConnection>,
    /// Whether the body was read to its end.
    has_ended: bool,
}

impl TrackedRequestBody {
    /// The body of a request on `connection`.
    pub(crate) fn new(body: Incoming, connection: Arc<TrackedConnection>) -> TrackedRequestBody {
        TrackedRequestBody {
            has_ended: body.is_end_stream(),
            body,
            connection,
        }
    }
}

impl HttpBody for TrackedRequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let result = Pin::new(&mut self.body).poll_frame(context);
        match &result {
            Poll::Pending => self.connection.waits_for_body(),
            Poll::Ready(frame) => self.has_ended = frame.is_none() || self.body.is_end_stream(),
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

impl Drop for TrackedRequestBody {
    fn drop(&mut self) {
        if !self.has_ended {
            self.connection.ignores_body();
        }
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
