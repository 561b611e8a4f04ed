//! The TLS settings of one host: the system's certificate authorities, those of the site and of
//! certs.d folders, and a client certificate.

use super::certificate::Certificate;
use super::verifier::CertificateVerifier;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The authorities that landfall trusts for a host, and the client certificate that it presents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsProfile {
    /// PEM files of certificate authorities that are trusted in addition to the system's.
    pub ca: Vec<PathBuf>,
    /// PEM files of the client certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Accept any certificate of the host (`skipVerify` of a site).
    pub skip_verify: bool,
}

/// A TLS setting that cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TlsError {
    /// rustls rejects its default protocol versions.
    #[error("cannot set up TLS: {0}")]
    Protocol(#[source] rustls::Error),
    /// A file of certificates cannot be read.
    #[error("cannot read certificates from {}: {source}", path.display())]
    ReadCertificates {
        /// The PEM file of the certificates.
        path: PathBuf,
        /// The error of reading or parsing it.
        source: Arc<pem::Error>,
    },
    /// A file contains no certificate.
    #[error("{} contains no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    /// A file contains a certificate that cannot be used as an authority.
    #[error("{} contains a certificate that cannot be used as an authority", .0.display())]
    NoAuthority(PathBuf),
    /// The client key cannot be read.
    #[error("cannot read the client key {}: {source}", path.display())]
    ReadKey {
        /// The PEM file of the key.
        path: PathBuf,
        /// The error of reading or parsing it.
        source: Arc<pem::Error>,
    },
    /// The client certificate cannot be used with its key.
    #[error("cannot use the client certificate {}: {source}", path.display())]
    Client {
        /// The PEM file of the certificate.
        path: PathBuf,
        /// The reason why rustls rejects the pair.
        source: rustls::Error,
    },
}

impl TlsError {
    /// The file that cannot be used, if the error is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            TlsError::Protocol(_) => None,
            TlsError::NoCertificate(path) | TlsError::NoAuthority(path) => Some(path),
            TlsError::ReadCertificates { path, .. }
            | TlsError::ReadKey { path, .. }
            | TlsError::Client { path, .. } => Some(path),
        }
    }
}

impl TlsProfile {
    /// Whether the profile has no settings: only the system's authorities are trusted.
    pub fn is_default(&self) -> bool {
        *self == TlsProfile::default()
    }

    /// Checks that the files of this profile can be used.
    ///
    /// # Errors
    /// If a file cannot be used. The error names the first such file.
    pub fn check(&self) -> Result<(), TlsError> {
        if self.is_default() {
            Ok(())
        } else {
            self.config().map(drop)
        }
    }

    /// Returns the configuration of rustls for this profile.
    pub(super) fn config(&self) -> Result<ClientConfig, TlsError> {
        // set explicitly: otherwise rustls uses the default provider of the process, which must
        // have been installed before
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Protocol)?;
        let verifier = if self.skip_verify {
            CertificateVerifier::any(provider)
        } else {
            let mut named = Vec::new();
            for path in &self.ca {
                let added = read_certificates(path)?;
                let (good, bad) =
                    RootCertStore::empty().add_parsable_certificates(added.iter().cloned());
                // if an unusable authority were skipped silently, the certificates that it
                // issued would be rejected later
                if good == 0 || bad > 0 {
                    return Err(TlsError::NoAuthority(path.clone()));
                }
                named.extend(added);
            }
            CertificateVerifier::new(named, provider)
        };
        // rustls calls any custom verifier dangerous; ours delegates to webpki unless `skipVerify`
        // is set
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let Some((certificate, key)) = &self.client else {
            return Ok(builder.with_no_client_auth());
        };
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::ReadKey {
            path: key.clone(),
            source: Arc::new(error),
        })?;
        builder
            .with_client_auth_cert(read_certificates(certificate)?, key)
            .map_err(|source| TlsError::Client {
                path: certificate.clone(),
                source,
            })
    }

    /// Names the authorities by which an accepted chain is trusted, for messages.
    pub(super) fn trust_source(&self, chain: &[Certificate]) -> String {
        if self.skip_verify {
            return "nothing: skipVerify accepts any certificate".into();
        }
        // the chain was verified already; names are enough to find the file for the message
        match self.ca.iter().find(|path| has_issuer_of(path, chain)) {
            Some(path) => path.display().to_string(),
            None => "the system's authorities".into(),
        }
    }
}

/// Whether a file contains the authority that issued a certificate of the chain.
fn has_issuer_of(path: &Path, chain: &[Certificate]) -> bool {
    let certificates = read_certificates(path).unwrap_or_default();
    let mut authorities = certificates.iter().filter_map(|der| Certificate::read(der));
    authorities.any(|authority| chain.iter().any(|sent| sent.is_issued_by(&authority)))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|error| TlsError::ReadCertificates {
            path: path.into(),
            source: Arc::new(error),
        })?;
    if list.is_empty() {
        Err(TlsError::NoCertificate(path.into()))
    } else {
        Ok(list)
    }
}
