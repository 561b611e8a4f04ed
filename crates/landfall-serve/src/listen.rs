//! The addresses and TLS certificates of the server.

use crate::ServeError;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A value of `--listen`, resolved.
pub(crate) struct ListenAddress {
    /// The value as the user wrote it.
    text: String,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) tls: bool,
}

/// A socket that accepts connections.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) tls: bool,
}

impl Listener {
    /// The URL of the listener, as in `https://127.0.0.1:5000`.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

impl ListenAddress {
    /// Parses and resolves `HOST:PORT`, optionally with `http://` or `https://` before it. Without
    /// a scheme, the address speaks https if the server has a certificate.
    pub(crate) async fn resolve(
        listen: &str,
        has_certificate: bool,
    ) -> Result<ListenAddress, ServeError> {
        let (text, tls) = if let Some(text) = listen.strip_prefix("http://") {
            (text, false)
        } else if let Some(text) = listen.strip_prefix("https://") {
            (text, true)
        } else {
            (listen, has_certificate)
        };
        if tls && !has_certificate {
            return Err(invalid_address(
                listen,
                "https needs --tls-cert and --tls-key",
            ));
        }
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(text.trim_end_matches('/'))
            .await
            .map_err(|error| invalid_address(listen, error.to_string()))?
            .collect();
        if addresses.is_empty() {
            return Err(invalid_address(listen, "the host name has no address"));
        }
        Ok(ListenAddress {
            text: listen.into(),
            addresses,
            tls,
        })
    }

    pub(crate) async fn bind(&self) -> Result<Listener, ServeError> {
        self.try_bind().await.map_err(|source| ServeError::Listen {
            address: self.text.clone(),
            source,
        })
    }

    async fn try_bind(&self) -> io::Result<Listener> {
        let socket = TcpListener::bind(&self.addresses[..]).await?;
        // the address of the socket: port 0 was replaced by a free port
        let address = socket.local_addr()?;
        Ok(Listener {
            socket,
            address,
            tls: self.tls,
        })
    }
}

fn invalid_address(listen: &str, why: impl Into<String>) -> ServeError {
    ServeError::Address {
        address: listen.into(),
        why: why.into(),
    }
}

/// An acceptor for HTTP/1.1 over TLS with these certificate chains and keys, or `None` without any.
pub(crate) fn tls_acceptor(
    files: &[(PathBuf, PathBuf)],
) -> Result<Option<TlsAcceptor>, ServeError> {
    if files.is_empty() {
        return Ok(None);
    }
    // not the default provider of the process: another crate may have set it, or it may be missing
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let keys = files
        .iter()
        .map(|(cert, key)| load_key(cert, key, &provider))
        .collect::<Result<_, _>>()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files[0].0, error.to_string()))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(CertificateResolver(keys)));
    // the server does not implement HTTP/2, so it must not be negotiated
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn load_key(
    cert: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, ServeError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(unusable(cert, "it contains no certificate".into()));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error.to_string()))?;
    CertifiedKey::from_der(chain, private, provider)
        .map(Arc::new)
        .map_err(|error| unusable(cert, error.to_string()))
}

fn unusable(path: &Path, why: String) -> ServeError {
    ServeError::Tls {
        path: path.into(),
        why,
    }
}

/// Selects the first certificate that covers the name in the TLS handshake (SNI), or else the first
/// one.
#[derive(Debug)]
struct CertificateResolver(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok());
        // without a match the first one is used: the client then reports the name that it expected
        let covering = name.and_then(|name| self.0.iter().find(|key| covers(key, &name)));
        covering.or(self.0.first()).cloned()
    }
}

fn covers(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let Some(cert) = key.cert.first() else {
        return false;
    };
    ParsedCertificate::try_from(cert).is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
}
