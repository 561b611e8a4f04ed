//! The connections of a server: accepted, served, and ended gracefully.

use super::file_pieces::FilePieces;
use super::seats::Seat;
use super::watched_stream::WatchedStream;
use crate::listen::Door;
use crate::observe::{AwaitedBody, Caller, ObservedBody};
use crate::origin::ServerName;
use crate::router;
use crate::state::State;
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, Response};
use futures_util::future::select_all;
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

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// How long responses in progress may take to end after the server is told to stop.
const GRACE: Duration = Duration::from_secs(10);
/// How long a connection that has to go may take to send what is written already.
const LAST: Duration = Duration::from_millis(500);
/// How many bytes of an answer are held beside the piece that is being sent.
const BUFFER: usize = 64 << 10;

/// A new state for each reload, and whether the server ends.
#[derive(Clone)]
struct Server {
    states: watch::Receiver<Arc<State>>,
    ended: watch::Receiver<bool>,
}

/// What a connection speaks, and what only that has.
enum Way {
    /// http: files may be sent by the system.
    Plain(FilePieces),
    /// https: the name of the handshake.
    Tls(ServerName),
}

/// Serves connections until `ended` says so, then lets responses in progress end.
pub(in super::super) async fn run(
    doors: Vec<Door>,
    states: watch::Receiver<Arc<State>>,
    mut ended: watch::Receiver<bool>,
) {
    let kept = states.borrow().kept.clone();
    let server = Server {
        states,
        ended: ended.clone(),
    };
    let (mut doors, mut open) = (doors, JoinSet::new());
    let sweeping = kept.seats.sweep();
    tokio::pin!(sweeping);
    loop {
        // another one first each time, so that a busy one does not hide the others
        doors.rotate_left(1);
        let next = async {
            let accepted = accept_any(&doors).await;
            (accepted, kept.seats.take().await)
        };
        let ((accepted, tls), seat) = tokio::select! {
            next = next => next,
            () = &mut sweeping => break,
            _ = ended.wait_for(|ended| *ended) => break,
        };
        while open.try_join_next().is_some() {}
        let Ok((stream, peer)) = accepted else {
            // out of file descriptors, most likely: some will be free again
            kept.seats.leave(&seat);
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (server, kept) = (server.clone(), kept.clone());
        open.spawn(async move {
            accept(stream, peer, tls, server, seat.clone()).await;
            kept.seats.leave(&seat);
        });
    }
    drop(doors);
    let _ = timeout(GRACE, async { while open.join_next().await.is_some() {} }).await;
}

/// The next connection at any of them, and whether TLS is spoken there.
async fn accept_any(doors: &[Door]) -> (io::Result<(TcpStream, SocketAddr)>, bool) {
    let accepting = doors.iter().map(|door| Box::pin(door.listener.accept()));
    let (accepted, at, _) = select_all(accepting).await;
    (accepted, doors[at].tls)
}

async fn accept(stream: TcpStream, peer: SocketAddr, tls: bool, server: Server, seat: Arc<Seat>) {
    let _ = stream.set_nodelay(true);
    let acceptor = server.states.borrow().tls.clone().filter(|_| tls);
    let pieces = FilePieces::default();
    let stream = WatchedStream {
        stream,
        seat: seat.clone(),
        pieces: pieces.clone(),
    };
    match acceptor {
        None => connection(stream, peer, Way::Plain(pieces), server, seat).await,
        Some(acceptor) => {
            let mut ended = server.ended.clone();
            let accepted = tokio::select! {
                accepted = timeout(HANDSHAKE, acceptor.accept(stream)) => accepted,
                // a handshake is idle: it ends for whoever waits
                () = seat.told() => return,
                _ = ended.wait_for(|ended| *ended) => return,
            };
            if let Ok(Ok(stream)) = accepted {
                let name = ServerName(stream.get_ref().1.server_name().map(str::to_owned));
                connection(stream, peer, Way::Tls(name), server, seat).await;
            }
        }
    }
}

/// One connection. hyper answers bytes that are not HTTP, such as the start of a TLS handshake,
/// with HTTP 400, which tells clients that this server speaks plain http.
async fn connection<S>(stream: S, peer: SocketAddr, way: Way, server: Server, seat: Arc<Seat>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Server { states, mut ended } = server;
    let idle = states.borrow().seats.idle();
    let seated = seat.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        match &way {
            Way::Plain(pieces) => drop(request.extensions_mut().insert(pieces.clone())),
            Way::Tls(name) => drop(request.extensions_mut().insert(name.clone())),
        }
        let (state, seat) = (states.borrow().clone(), seated.clone());
        async move { Ok::<_, Infallible>(answer(state, seat, peer, request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let ending = async move { drop(ended.wait_for(|ended| *ended).await) };
    tokio::pin!(serving, ending);
    tokio::select! {
        _ = serving.as_mut() => return,
        () = seat.told() => {
            if !seat.is_unread() {
                // a request that has just come in is still answered
                serving.as_mut().graceful_shutdown();
                let _ = timeout(LAST, serving.as_mut()).await;
            }
            return;
        }
        () = ending => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

/// One request, which holds its place in flight up to the last byte of its answer.
async fn answer(
    state: Arc<State>,
    seat: Arc<Seat>,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<Body> {
    let busy = seat.begin();
    let caller = Caller::of(&request, peer);
    let (kept, observer) = (state.kept.clone(), state.observer.clone());
    let (mut response, ticket) = if router::is_about_the_server(&state, &request) {
        (router::about(&state, &request).await, None)
    } else {
        let request = request.map(|body| Body::new(AwaitedBody::new(body, move || seat.awaits())));
        router::answer(state, peer.ip(), request).await
    };
    router::confine(&mut response);
    if kept.draining.load(Ordering::Relaxed) {
        // whoever stands before several servers opens the next connection to another one
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    ObservedBody::wrap(response, caller, observer, busy, ticket)
}
