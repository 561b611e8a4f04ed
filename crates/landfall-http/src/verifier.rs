//! Checks a server's certificate as rustls does, and says what the server presented where the check
//! fails.

use super::certificate::Certificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use std::sync::{Arc, OnceLock};

/// A certificate that is not accepted: what was presented, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Untrusted {
    /// Why.
    pub(super) cause: Cause,
    /// The certificates that the server sent, as far as they can be read; its own first.
    pub(super) chain: Vec<Certificate>,
}

/// Why a certificate is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cause {
    /// No authority that is trusted here vouches for it. `none` says that there are none at all.
    Issuer {
        /// There is no certificate authority on this machine and in the settings.
        none: bool,
    },
    /// Something else is wrong, in these words.
    Other(String),
}

impl Untrusted {
    /// Who vouches for the chain: the issuer of its last certificate.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.chain.last().map(|last| last.issuer.as_str())
    }
}

impl std::fmt::Display for Untrusted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = self.chain.first();
        match &self.cause {
            Cause::Issuer { none } => {
                match own {
                    Some(own) if own.is_self_issued() => {
                        write!(
                            f,
                            "its certificate is signed by itself ('{}') and not trusted here",
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
            Cause::Other(words) => match own {
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

impl std::error::Error for Untrusted {}

/// Checks certificates as rustls does; a refusal is an [`Untrusted`].
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Trust {
    /// Any certificate: only for hosts that the user named with `skipVerify`.
    Any,
    Roots {
        /// Made when the first certificate is to be checked: reading the system's roots takes
        /// longer than much of what is done without TLS. `None` where there are no roots at all:
        /// then nothing is trusted.
        inner: OnceLock<Option<Arc<WebPkiServerVerifier>>>,
        /// The authorities that were named for this host. One of them may be the server's own:
        /// webpki takes no authority for a server, but a certificate that somebody signed with its
        /// own key is both.
        named: Vec<CertificateDer<'static>>,
    },
}

impl CertificateVerifier {
    /// Trusts any certificate.
    pub(super) fn any(provider: Arc<CryptoProvider>) -> CertificateVerifier {
        CertificateVerifier {
            trust: Trust::Any,
            provider,
        }
    }

    /// Trusts the system's roots and the authorities `named` for this host, and these themselves
    /// where the server sends one.
    pub(super) fn new(
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> CertificateVerifier {
        CertificateVerifier {
            trust: Trust::Roots {
                inner: OnceLock::new(),
                named,
            },
            provider,
        }
    }

    /// Checks by the system's roots and those that are named; `None` where there are none at all.
    fn by_roots(&self, named: &[CertificateDer<'static>]) -> Option<Arc<WebPkiServerVerifier>> {
        let mut roots = system_roots().clone();
        roots.add_parsable_certificates(named.iter().cloned());
        // it refuses to be made without roots alone
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
            .build()
            .ok()
    }

    /// Whether the server's own certificate, which is one of the named ones, is good for its name
    /// and now.
    fn check_named(
        end_entity: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let invalid = |error| match error {
            rustls::Error::InvalidCertificate(error) => error,
            _ => CertificateError::BadEncoding,
        };
        verify_server_name(
            &ParsedCertificate::try_from(end_entity).map_err(invalid)?,
            server_name,
        )
        .map_err(invalid)?;
        let own = Certificate::read(end_entity).ok_or(CertificateError::BadEncoding)?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match (now < own.from.as_second(), now > own.until.as_second()) {
            (true, _) => Err(CertificateError::NotValidYet),
            (_, true) => Err(CertificateError::Expired),
            _ => Ok(()),
        }
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
        let Trust::Roots { inner, named } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let inner = inner.get_or_init(|| self.by_roots(named));
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
            (CertificateError::UnknownIssuer, _) => Cause::Issuer {
                none: inner.is_none(),
            },
            // webpki's word for a certificate that is its own authority
            (CertificateError::Other(_), Some(own)) if own.is_self_issued() => {
                Cause::Issuer { none: false }
            }
            (CertificateError::Expired | CertificateError::ExpiredContext { .. }, Some(own)) => {
                Cause::Other(format!("it ended at {}", own.until))
            }
            (
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
                Some(own),
            ) => Cause::Other(format!(
                "it begins at {}; is this machine's clock right?",
                own.from
            )),
            (
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                Some(_),
            ) => {
                let (names, wanted) = (Certificate::names(end_entity), server_name.to_str());
                Cause::Other(match names.is_empty() {
                    true => format!("it names no host, and {wanted} is asked"),
                    false => format!("it is for {}, and not for {wanted}", names.join(", ")),
                })
            }
            (error, _) => Cause::Other(error.to_string()),
        };
        let refused = OtherError(Arc::new(Untrusted { cause, chain }));
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

/// The system's roots; none at all is fine until a certificate has to be checked against them.
fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    })
}
