//! Accepts connections, serves their requests, and closes the connections gracefully.

use crate::connections::{SendfileQueue, TrackedConnection, TrackedStream};
use crate::observe::{ObservedResponseBody, RequestInfo, TrackedRequestBody};
use crate::response::{Body, RequestError, boxed_body};
use crate::route::{ServerName, with_single_slashes};
use crate::router;
use crate::run::Listener;
use crate::state::ServerState;
use futures_util::future::select_all;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// The time that responses in progress may take after the server stops accepting connections.
const GRACE: Duration = Duration::from_secs(10);
/// How long the server waits before it closes a connection whose last response is written to a
/// buffer but not yet sent.
const LAST_WRITE: Duration = Duration::from_millis(500);
/// The maximum number of bytes that hyper buffers in each direction of a connection, in addition to
/// the piece of a response that is being sent.
const BUFFER: usize = 64 << 10;

/// The channels that every connection watches: the current state, and whether the server is
/// stopping.
#[derive(Clone)]
struct ServerChannels {
    states: watch::Receiver<Arc<ServerState>>,
    ended: watch::Receiver<bool>,
}

/// The protocol of a connection, with the request extension that belongs to it.
enum ConnectionProtocol {
    /// Plain http: the system may send files directly.
    Plain(SendfileQueue),
    /// https, with the name from the handshake.
    Tls(ServerName),
}

/// Serves connections until `ended` is set, then lets responses in progress end.
pub(crate) async fn accept_connections(
    mut listeners: Vec<Listener>,
    states: watch::Receiver<Arc<ServerState>>,
    mut ended: watch::Receiver<bool>,
) {
    let context = states.borrow().context.clone();
    let channels = ServerChannels {
        states,
        ended: ended.clone(),
    };
    let mut open = JoinSet::new();
    let closing_idle = context.connections.close_expired();
    tokio::pin!(closing_idle);
    loop {
        // start with another listener each time, so that a busy one does not starve the others
        listeners.rotate_left(1);
        let next = async {
            let accepted = accept_any(&listeners).await;
            // while this connection waits for room in the table, the server accepts no other
            // connection: new connections stay in the queue of the system
            (accepted, context.connections.add().await)
        };
        let ((accepted, tls), connection) = tokio::select! {
            next = next => next,
            () = &mut closing_idle => break,
            _ = ended.wait_for(|ended| *ended) => break,
        };
        while open.try_join_next().is_some() {}
        let Ok((stream, peer)) = accepted else {
            // most likely out of file descriptors: wait until some are free again
            context.connections.remove(&connection);
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let channels = channels.clone();
        let context = context.clone();
        open.spawn(async move {
            serve_stream(stream, peer, tls, channels, connection.clone()).await;
            context.connections.remove(&connection);
        });
    }
    // from here on, new connections are refused, so that load balancers notice at once
    drop(listeners);
    let _ = timeout(GRACE, async { while open.join_next().await.is_some() {} }).await;
}

/// The next connection of any listener, and whether it speaks TLS.
async fn accept_any(listeners: &[Listener]) -> (io::Result<(TcpStream, SocketAddr)>, bool) {
    let accepting = listeners
        .iter()
        .map(|listener| Box::pin(listener.socket.accept()));
    let (accepted, index, _) = select_all(accepting).await;
    (accepted, listeners[index].tls)
}

/// Serves one connection, after the TLS handshake if it speaks TLS.
async fn serve_stream(
    stream: TcpStream,
    peer: SocketAddr,
    tls: bool,
    channels: ServerChannels,
    connection: Arc<TrackedConnection>,
) {
    // hyper writes whole heads and pieces, so waiting for more bytes would only add latency
    let _ = stream.set_nodelay(true);
    // from the current state: a reload may have loaded a new certificate
    let acceptor = channels.states.borrow().tls.clone().filter(|_| tls);
    let Some(acceptor) = acceptor else {
        let files = SendfileQueue::default();
        let stream = TrackedStream::new(stream, connection.clone(), files.clone());
        let protocol = ConnectionProtocol::Plain(files);
        return serve_requests(stream, peer, protocol, channels, connection).await;
    };
    let mut ended = channels.ended.clone();
    let accepted = tokio::select! {
        accepted = timeout(HANDSHAKE, handshake(acceptor, stream, &connection)) => accepted,
        // a connection in its handshake is idle, so it may have to make room for another one
        () = connection.close_requested() => return,
        _ = ended.wait_for(|ended| *ended) => return,
    };
    if let Ok(Some(stream)) = accepted {
        let name = ServerName(stream.get_ref().1.server_name().map(str::to_owned));
        let protocol = ConnectionProtocol::Tls(name);
        serve_requests(stream, peer, protocol, channels, connection).await;
    }
}

/// The stream after its TLS handshake, or `None` if the handshake fails.
async fn handshake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    connection: &Arc<TrackedConnection>,
) -> Option<TlsStream<TrackedStream>> {
    let mut first = [0];
    stream.peek(&mut first).await.ok()?;
    let stream = TrackedStream::new(stream, connection.clone(), SendfileQueue::default());
    // the name of an HTTP method; no TLS record begins with a letter
    if first[0].is_ascii_uppercase() {
        connection.ignores_body();
        refuse_plain_http(stream).await;
        return None;
    }
    acceptor.accept(stream).await.ok()
}

/// Answers a client that speaks plain http to an address for https, as Go and nginx do: to people,
/// the alert of the TLS handshake looks like a broken server.
async fn refuse_plain_http(stream: TrackedStream) {
    let service = service_fn(async |_: Request<Incoming>| {
        let message = "client sent an HTTP request to an HTTPS server; use https://";
        let error = RequestError::bad_request("UNSUPPORTED", message);
        Ok::<_, Infallible>(error.into_text())
    });
    let serving = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let _ = serving.await;
}

/// Serves the requests of one connection. hyper answers bytes that are not HTTP, such as the start
/// of a TLS handshake, with HTTP 400, which tells clients that this server speaks plain http.
async fn serve_requests<S>(
    stream: S,
    peer: SocketAddr,
    protocol: ConnectionProtocol,
    channels: ServerChannels,
    connection: Arc<TrackedConnection>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ServerChannels { states, mut ended } = channels;
    let keep_alive = states.borrow().connections.keep_alive;
    let served = connection.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let extensions = request.extensions_mut();
        match &protocol {
            ConnectionProtocol::Plain(files) => drop(extensions.insert(files.clone())),
            ConnectionProtocol::Tls(name) => drop(extensions.insert(name.clone())),
        }
        let state = states.borrow().clone();
        let connection = served.clone();
        async move { Ok::<_, Infallible>(respond(state, connection, peer, request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        // a client that sends its head byte by byte counts as idle
        .header_read_timeout(keep_alive)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let ending = async move { drop(ended.wait_for(|ended| *ended).await) };
    tokio::pin!(serving, ending);
    tokio::select! {
        _ = serving.as_mut() => return,
        () = connection.close_requested() => {
            // a client that reads nothing would hold the connection until the timeout
            if !connection.is_unread() {
                // a request that has just arrived is still answered
                serving.as_mut().graceful_shutdown();
                // the response to the current request may already be written but not yet sent
                let _ = timeout(LAST_WRITE, serving.as_mut()).await;
            }
            return;
        }
        () = ending => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

/// Answers one request. The body of the response holds the permit until its end.
async fn respond(
    state: Arc<ServerState>,
    connection: Arc<TrackedConnection>,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let guard = connection.begin_request();
    let info = RequestInfo::new(&request, peer);
    if let Some(uri) = with_single_slashes(request.uri()) {
        *request.uri_mut() = uri;
    }
    let context = state.context.clone();
    // probes and metrics need no permit, so that they are answered under load
    let (mut response, permit) = if router::is_about_server(&state, &request) {
        (router::respond_about_server(&state, &request).await, None)
    } else {
        let request = request.map(|body| boxed_body(TrackedRequestBody::new(body, connection)));
        router::respond(state, peer.ip(), request).await
    };
    router::confine(&mut response);
    if context.draining.load(Ordering::Relaxed) {
        // a load balancer then opens the next connection to another server
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    ObservedResponseBody::wrap(response, info, context.observer.clone(), guard, permit)
}
