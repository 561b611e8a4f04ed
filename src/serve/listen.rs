//! Where it listens: addresses and their guard, TLS, connections, and a graceful end.

use super::ServeError;
use super::app::App;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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
/// How long a connection may lie idle, or a client take for the head of a request: longer than clients
/// keep idle connections themselves (90 s with Go and reqwest), so that they hang up first.
const IDLE: Duration = Duration::from_secs(120);
/// How long answers under way may take to end when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// All addresses that `listen` (`HOST:PORT`) means.
pub(super) async fn addresses(listen: &str) -> Result<Vec<SocketAddr>, ServeError> {
    let wrong = |why: String| ServeError::Address { address: listen.into(), why };
    let found = tokio::net::lookup_host(listen).await.map_err(|error| wrong(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(wrong("the name has no address".into())) } else { Ok(found) }
}

pub(super) async fn bind(listen: &str, addresses: &[SocketAddr]) -> Result<TcpListener, ServeError> {
    let wrong = |source| ServeError::Listen { address: listen.into(), source };
    TcpListener::bind(addresses).await.map_err(wrong)
}

/// Certificate chain and key in PEM form, as an acceptor for HTTP/1.1.
pub(super) fn tls(cert: &Path, key: &Path) -> Result<TlsAcceptor, ServeError> {
    let wrong = |path: &Path, why: String| ServeError::Tls { path: PathBuf::from(path), why };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(cert, "there is no certificate in it".into()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| wrong(cert, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves connections until `stop` is ready, then lets the answers under way end.
pub(super) async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: Arc<App>,
    stop: impl Future<Output = ()>,
) {
    let room = Arc::new(Semaphore::new(app.limits.connections));
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
        let (tls, app, ended) = (tls.clone(), app.clone(), ended.clone());
        open.spawn(async move {
            accept(stream, tls, app, ended).await;
            drop(seat);
        });
    }
    drop(listener);
    let _ = ending.send(true);
    let _ = timeout(GRACE, async { while open.join_next().await.is_some() {} }).await;
}

async fn accept(stream: TcpStream, tls: Option<TlsAcceptor>, app: Arc<App>, ended: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => connection(stream, app, ended).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE, tls.accept(stream)).await {
                connection(stream, app, ended).await;
            }
        }
    }
}

/// One connection. To something that is no HTTP, such as the begin of a TLS handshake, hyper answers
/// with an HTTP 400; that tells clients that plain http is spoken here.
async fn connection<S>(stream: S, app: Arc<App>, mut ended: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let app = app.clone();
        async move { Ok::<_, Infallible>(app.answer(request.map(Body::new)).await) }
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
