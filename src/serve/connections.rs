//! Connections: how many are open, TLS handshakes, idle time, and a graceful end.

use super::router;
use super::state::State;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// How long a connection may be idle, or a client may take to send the head of a request. Clients keep idle
/// connections for less (Go and reqwest: 90 s), so that they hang up first.
const IDLE: Duration = Duration::from_mins(2);
/// How long responses in progress may take to end after the server is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Serves connections until `stop` is ready, then lets responses in progress end.
pub(super) async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    state: Arc<State>,
    stop: impl Future<Output = ()>,
) {
    let room = Arc::new(Semaphore::new(state.limits.connections));
    let (ending, ended) = watch::channel(false);
    let mut open = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let next = async {
            let seat = room.clone().acquire_owned().await;
            (seat, listener.accept().await)
        };
        let (seat, accepted) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        while open.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else {
            // out of file descriptors, most likely: some will be free again
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (tls, state, ended) = (tls.clone(), state.clone(), ended.clone());
        open.spawn(async move {
            accept(stream, tls, state, ended).await;
            drop(seat);
        });
    }
    drop(listener);
    let _ = ending.send(true);
    let _ = timeout(GRACE, async { while open.join_next().await.is_some() {} }).await;
}

async fn accept(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    state: Arc<State>,
    ended: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => connection(stream, state, ended).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE, tls.accept(stream)).await {
                connection(stream, state, ended).await;
            }
        }
    }
}

/// One connection. hyper answers bytes that are not HTTP, such as the start of a TLS handshake, with HTTP
/// 400, which tells clients that this server speaks plain http.
async fn connection<S>(stream: S, state: Arc<State>, mut ended: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(router::answer(state, request.map(Body::new)).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => return,
        _ = ended.wait_for(|ended| *ended) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}
