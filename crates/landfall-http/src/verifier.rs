//! Checks server certificates as rustls does. If a check fails, the error says what the server
//! presented.

use super::certificate::Certificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use std::sync::{Arc, OnceLock};

/// A certificate that is not accepted: what the server presented, and why it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UntrustedCertificate {
    pub(super) cause: DistrustCause,
    /// The certificates of the server that can be read, its own first.
    pub(super) chain: Vec<Certificate>,
}

/// Why a certificate is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DistrustCause {
    /// No trusted authority issued it.
    Issuer {
        /// Whether there is no certificate authority at all, on this machine and in the settings.
        none: bool,
    },
    /// Another reason, as a message.
    Other(String),
}

impl UntrustedCertificate {
    /// The issuer of the last certificate of the chain.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.chain.last().map(|last| last.issuer.as_str())
    }
}

impl std::fmt::Display for UntrustedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = self.chain.first();
        match &self.cause {
            DistrustCause::Issuer { none } => {
                match own {
                    Some(own) if own.is_self_issued() => {
                        write!(
                            f,
                            "its certificate is self-signed ('{}') and not trusted here",
                            own.subject
                        )
                    }
                    _ => write!(
                        f,
                        "its certificate is issued by '{}', which is not trusted here",
                        self.issuer().unwrap_or("an unreadable issuer")
                    ),
                }?;
                if *none {
                    f.write_str(" (this machine has no certificate authorities at all)")
                } else {
                    Ok(())
                }
            }
            DistrustCause::Other(words) => match own {
                Some(own) => write!(
                    f,
                    "its certificate (issued by '{}') is refused: {words}",
                    own.issuer
                ),
                None => write!(f, "its certificate is refused: {words}"),
            },
        }
    }
}

impl std::error::Error for UntrustedCertificate {}

/// Checks certificates as rustls does; a refusal is an [`UntrustedCertificate`].
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    anchors: TrustAnchors,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum TrustAnchors {
    /// Any certificate: only for hosts that the user named with `skipVerify`.
    Any,
    Roots {
        /// Made when the first certificate is checked, since reading the system's roots takes some
        /// milliseconds that commands without TLS need not spend. `None` if there are no roots at
        /// all: then nothing is trusted.
        inner: OnceLock<Option<Arc<WebPkiServerVerifier>>>,
        /// The authorities that are configured for this host. One of them may be the certificate of
        /// the server: webpki accepts no authority as a server, but a self-signed certificate is
        /// both.
        named: Vec<CertificateDer<'static>>,
    },
}

impl CertificateVerifier {
    /// Trusts any certificate.
    pub(super) fn any(provider: Arc<CryptoProvider>) -> CertificateVerifier {
        CertificateVerifier {
            anchors: TrustAnchors::Any,
            provider,
        }
    }

    /// Trusts the system's roots and the authorities `named` for this host, also if the server
    /// presents one of these as its own certificate.
    pub(super) fn new(
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> CertificateVerifier {
        CertificateVerifier {
            anchors: TrustAnchors::Roots {
                inner: OnceLock::new(),
                named,
            },
            provider,
        }
    }

    /// The verifier with the system's roots and those that are named; `None` if there are none.
    fn root_verifier(
        &self,
        named: &[CertificateDer<'static>],
    ) -> Option<Arc<WebPkiServerVerifier>> {
        let mut roots = system_roots().clone();
        roots.add_parsable_certificates(named.iter().cloned());
        // the builder fails only if there are no roots
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
            .build()
            .ok()
    }

    /// Checks the name and the validity of the server's certificate, which is one of the named
    /// ones.
    fn check_named(
        end_entity: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let parsed = ParsedCertificate::try_from(end_entity).map_err(certificate_error)?;
        verify_server_name(&parsed, server_name).map_err(certificate_error)?;
        let own = Certificate::read(end_entity).ok_or(CertificateError::BadEncoding)?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now < own.not_before.as_second() {
            return Err(CertificateError::NotValidYet);
        }
        if now > own.not_after.as_second() {
            return Err(CertificateError::Expired);
        }
        Ok(())
    }
}

fn certificate_error(error: rustls::Error) -> CertificateError {
    match error {
        rustls::Error::InvalidCertificate(error) => error,
        _ => CertificateError::BadEncoding,
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let TrustAnchors::Roots { inner, named } = &self.anchors else {
            return Ok(ServerCertVerified::assertion());
        };
        let inner = inner.get_or_init(|| self.root_verifier(named));
        let error = match inner {
            Some(inner) => {
                match inner.verify_server_cert(
                    end_entity,
                    intermediates,
                    server_name,
                    ocsp_response,
                    now,
                ) {
                    Err(rustls::Error::InvalidCertificate(error)) => error,
                    result => return result,
                }
            }
            None => CertificateError::UnknownIssuer,
        };
        let error = if named.contains(end_entity) {
            match CertificateVerifier::check_named(end_entity, server_name, now) {
                Ok(()) => return Ok(ServerCertVerified::assertion()),
                Err(error) => error,
            }
        } else {
            error
        };
        let chain: Vec<Certificate> = std::iter::once(end_entity)
            .chain(intermediates)
            .filter_map(|der| Certificate::read(der))
            .collect();
        let cause = match (error, chain.first()) {
            (CertificateError::UnknownIssuer, _) => DistrustCause::Issuer {
                none: inner.is_none(),
            },
            // webpki's error for a certificate that is its own authority
            (CertificateError::Other(_), Some(own)) if own.is_self_issued() => {
                DistrustCause::Issuer { none: false }
            }
            (CertificateError::Expired | CertificateError::ExpiredContext { .. }, Some(own)) => {
                DistrustCause::Other(format!("it ended at {}", own.not_after))
            }
            (
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
                Some(own),
            ) => DistrustCause::Other(format!(
                "it begins at {}; is this machine's clock right?",
                own.not_before
            )),
            (
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                Some(_),
            ) => {
                let names = Certificate::names(end_entity);
                let wanted = server_name.to_str();
                DistrustCause::Other(if names.is_empty() {
                    format!("it names no host, and the request is for {wanted}")
                } else {
                    format!("it is for {}, and not for {wanted}", names.join(", "))
                })
            }
            (error, _) => DistrustCause::Other(error.to_string()),
        };
        let refused = OtherError(Arc::new(UntrustedCertificate { cause, chain }));
        Err(rustls::Error::InvalidCertificate(CertificateError::Other(
            refused,
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// The system's certificate authorities, which may be none.
fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    })
}
