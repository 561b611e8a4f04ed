//! Observes requests: the access log, the metrics, and what clients asked for in vain.

mod access_log;

use self::access_log::{CompletedRequest, combined_log_line};
use crate::connections::{RequestGuard, RequestPermit, TrackedConnection};
use crate::response::{Body, BodyError, boxed_body};
use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use jiff::Timestamp;
use landfall_item::RequestedName;
use landfall_model::locked;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

pub use self::access_log::{AccessLog, LogTarget};
pub(crate) use self::access_log::{RequestInfo, UserName};

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

// What clients asked for and did not get, so that the next bundle can have it.

/// The maximum number of names in the list. A name has at most 1 KiB.
const MAX_NAMES: usize = 500;

/// The maximum number of addresses that are kept for a name.
const MAX_CLIENTS: usize = 8;

/// A name that clients asked for and that the server did not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Miss {
    /// The path of the first request, to look it up again.
    pub(crate) path: String,
    pub(crate) count: u64,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// The first [`MAX_CLIENTS`] addresses that asked for it.
    pub(crate) clients: BTreeSet<IpAddr>,
}

/// The misses since the start of the server. Its memory is bounded: the name that was asked for
/// least recently makes room for a new one.
#[derive(Default)]
pub(crate) struct MissList {
    by_name: Mutex<BTreeMap<RequestedName, Miss>>,
    /// The number of names that made room for others.
    dropped: AtomicU64,
}

impl MissList {
    /// Records that `client` asked for `requested` at `now`, by `path`.
    pub(crate) fn record(
        &self,
        requested: RequestedName,
        path: &str,
        client: IpAddr,
        now: Timestamp,
    ) {
        let mut misses = locked(&self.by_name);
        if !misses.contains_key(&requested) && misses.len() >= MAX_NAMES {
            let oldest = misses.iter().min_by_key(|(_, miss)| miss.last);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                misses.remove(&name);
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        let miss = misses.entry(requested).or_insert_with(|| Miss {
            path: path.to_owned(),
            count: 0,
            first: now,
            last: now,
            clients: BTreeSet::new(),
        });
        miss.count += 1;
        miss.last = now;
        if miss.clients.len() < MAX_CLIENTS {
            // an IPv4 client of an IPv6 socket is shown by its IPv4 address
            miss.clients.insert(client.to_canonical());
        }
    }

    /// Returns the misses, those with most requests first, and the number of names that were
    /// dropped.
    pub(crate) fn list(&self) -> (Vec<(RequestedName, Miss)>, u64) {
        let misses = locked(&self.by_name);
        let mut list: Vec<_> = misses.clone().into_iter().collect();
        // stable: equal counts stay in the order of names
        list.sort_by_key(|(_, miss)| Reverse(miss.count));
        (list, self.dropped.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::report::EntryKind;

    #[test]
    fn the_list_is_bounded_and_keeps_what_was_asked_for_last() {
        let list = MissList::default();
        let ask = |name: &str, client: u8, second: i64| {
            let requested = RequestedName {
                kind: EntryKind::Image,
                name: name.into(),
                host: None,
            };
            let client = IpAddr::from([10, 0, 0, client]);
            let now = Timestamp::from_second(second).unwrap();
            list.record(requested, name, client, now);
        };
        for client in 0..20 {
            ask("often", client, 1_000_000);
        }
        for number in 0..MAX_NAMES {
            ask(&format!("n{number}"), 1, number as i64);
        }
        let (misses, dropped) = list.list();
        assert_eq!((misses.len(), dropped), (MAX_NAMES, 1));
        let (requested, miss) = &misses[0];
        assert_eq!(requested.name, "often");
        assert_eq!((miss.count, miss.clients.len()), (20, MAX_CLIENTS));
        assert!(!misses.iter().any(|(requested, _)| requested.name == "n0"));
    }
}
