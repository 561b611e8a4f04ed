//! The address and the TLS certificate at which the server listens.

use super::ServeError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// All addresses of `listen` (`HOST:PORT`).
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
