//! The addresses and the TLS certificates at which the server listens.

use super::ServeError;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Where to listen, and in which scheme.
pub(super) struct Place {
    /// As it was written.
    text: String,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) tls: bool,
}

/// A socket that takes connections.
pub(super) struct Door {
    pub(super) listener: TcpListener,
    /// `HOST:PORT` at which it listens.
    pub(super) address: SocketAddr,
    pub(super) tls: bool,
}

impl Door {
    /// `https://127.0.0.1:5000`
    pub(super) fn url(&self) -> String {
        format!(
            "{}://{}",
            if self.tls { "https" } else { "http" },
            self.address
        )
    }
}

impl Place {
    /// Reads `HOST:PORT`, which may have `http://` or `https://` before it; without it, https is
    /// spoken where there is a certificate.
    pub(super) async fn find(listen: &str, has_certificate: bool) -> Result<Place, ServeError> {
        let wrong = |why: String| ServeError::Address {
            address: listen.into(),
            why,
        };
        let (text, tls) = match (
            listen.strip_prefix("http://"),
            listen.strip_prefix("https://"),
        ) {
            (Some(text), _) => (text, false),
            (_, Some(text)) => (text, true),
            _ => (listen, has_certificate),
        };
        if tls && !has_certificate {
            return Err(wrong("https needs --tls-cert and --tls-key".into()));
        }
        let found = tokio::net::lookup_host(text.trim_end_matches('/')).await;
        let addresses: Vec<SocketAddr> = found.map_err(|error| wrong(error.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(wrong("the name has no address".into()));
        }
        Ok(Place {
            text: listen.into(),
            addresses,
            tls,
        })
    }

    pub(super) async fn bind(&self) -> Result<Door, ServeError> {
        let wrong = |source| ServeError::Listen {
            address: self.text.clone(),
            source,
        };
        let listener = TcpListener::bind(&self.addresses[..])
            .await
            .map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        Ok(Door {
            listener,
            address,
            tls: self.tls,
        })
    }
}

/// Certificate chains and keys in PEM form, as an acceptor for HTTP/1.1; `None` where there are
/// none. A client gets the first one that covers the name it asks for, or else the first.
pub(super) fn tls(files: &[(PathBuf, PathBuf)]) -> Result<Option<TlsAcceptor>, ServeError> {
    if files.is_empty() {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let keys = files
        .iter()
        .map(|(cert, key)| certified(cert, key, &provider))
        .collect::<Result<_, _>>()?;
    let wrong = |error: rustls::Error| ServeError::Tls {
        path: files[0].0.clone(),
        why: error.to_string(),
    };
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Certificates(keys)));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn certified(
    cert: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, ServeError> {
    let wrong = |path: &Path, why: String| ServeError::Tls {
        path: PathBuf::from(path),
        why,
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(cert, "there is no certificate in it".into()));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let certified = CertifiedKey::from_der(chain, private, provider);
    certified
        .map(Arc::new)
        .map_err(|error| wrong(cert, error.to_string()))
}

/// Certificates by the name that a client asks for.
#[derive(Debug)]
struct Certificates(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok());
        let covers = |key: &&Arc<CertifiedKey>| {
            let (Some(name), Some(cert)) = (&name, key.cert.first()) else {
                return false;
            };
            let parsed = ParsedCertificate::try_from(cert);
            parsed.is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
        };
        self.0.iter().find(covers).or(self.0.first()).cloned()
    }
}
