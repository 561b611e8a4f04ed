//! Verifies server certificates as rustls does, and also accepts a server certificate that is
//! configured for the host. If verification fails, the error describes the certificate that the
//! server presented.

use crate::clients::read_certificates;
use jiff::Timestamp;
use landfall_model::extend_distinct;
use landfall_model::report::one_line;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use x509_parser::asn1_rs::Tag;
use x509_parser::certificate::X509CertificateParser;
use x509_parser::extensions::GeneralName;
use x509_parser::nom::Parser;
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_COUNTRY_NAME, OID_X509_ORGANIZATION_NAME,
    OID_X509_ORGANIZATIONAL_UNIT,
};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// A rejected certificate, with the chain that the server presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UntrustedCertificate {
    pub(super) cause: DistrustCause,
    /// The certificates of the server that can be parsed, its own first.
    pub(super) chain: Vec<Certificate>,
}

/// The reason why a certificate is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DistrustCause {
    /// No trusted authority issued it.
    Issuer {
        /// Why there is no certificate authority at all, neither on this machine nor in the
        /// settings; `None` if there is one.
        no_roots: Option<&'static str>,
    },
    /// Another reason, as a message.
    Other(String),
}

impl UntrustedCertificate {
    /// Returns the issuer of the last certificate of the chain: the authority that is not trusted.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.chain.last().map(|last| last.issuer.as_str())
    }
}

impl std::fmt::Display for UntrustedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = self.chain.first();
        match &self.cause {
            DistrustCause::Issuer { no_roots } => {
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
                match no_roots {
                    Some(why) => write!(f, " ({why})"),
                    None => Ok(()),
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

/// Verifies certificates as rustls does; its errors contain an [`UntrustedCertificate`].
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    verified: VerifiedHosts,
    /// Created when the first certificate is verified, because reading the system's roots takes
    /// some milliseconds that commands without TLS can save. `None` if there are no roots at all;
    /// then nothing is trusted.
    inner: OnceLock<Option<Arc<WebPkiServerVerifier>>>,
    /// The authorities that are configured for this host. One of them may be the certificate of the
    /// server itself: webpki does not accept an authority as a server, but a self-signed
    /// certificate is both.
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

/// The hosts whose certificates are verified.
#[derive(Debug)]
enum VerifiedHosts {
    All,
    /// Only this host, if any: the user named the other one with `skipVerify`.
    Only(Option<ServerName<'static>>),
}

impl CertificateVerifier {
    /// Returns a verifier that trusts the system's roots and the authorities `named` for this host,
    /// even if the server presents one of these as its own certificate.
    pub(super) fn new(
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> CertificateVerifier {
        CertificateVerifier {
            verified: VerifiedHosts::All,
            inner: OnceLock::new(),
            named,
            provider,
        }
    }

    /// Accepts any certificate of all hosts but `host` (`skipVerify`).
    pub(super) fn only_of(self, host: Option<ServerName<'static>>) -> CertificateVerifier {
        CertificateVerifier {
            verified: VerifiedHosts::Only(host),
            ..self
        }
    }

    /// Returns webpki's verifier with the system's roots and the named authorities; `None` if there
    /// is neither.
    fn root_verifier(&self) -> Option<Arc<WebPkiServerVerifier>> {
        let mut roots = system_roots().clone();
        roots.add_parsable_certificates(self.named.iter().cloned());
        // the builder fails only if there are no roots
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
            .build()
            .ok()
    }

    /// Checks the name and the validity of a server certificate that is one of the named
    /// authorities.
    fn check_named(
        end_entity: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let parsed = ParsedCertificate::try_from(end_entity).map_err(certificate_error)?;
        verify_server_name(&parsed, server_name).map_err(certificate_error)?;
        // webpki checks the validity only as part of a chain, which does not exist here
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

/// Describes an error of a certificate without the identifiers of the library.
pub(super) fn error_words(error: &CertificateError) -> String {
    // object identifiers in DER: RSA and ECDSA with SHA-1 (RFC 8017, appendix C; RFC 3279, 2.2.3)
    const WITH_SHA1: [&[u8]; 2] = [
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5],
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1],
    ];
    const SUPPORTED: &str = "supported are RSA keys from 2,048 bits and ECDSA on P-256, P-384 and \
                             P-521, each with SHA-2, and Ed25519";
    match error {
        CertificateError::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id: id,
            ..
        } if WITH_SHA1
            .iter()
            .any(|oid| id.windows(oid.len()).any(|part| part == *oid)) =>
        {
            "it, or an authority in its chain, is signed with SHA-1, which is not secure; have it \
             issued again with SHA-256"
                .to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => format!(
            "it, or an authority in its chain, has a key or a signature of a kind that landfall \
             cannot verify; {SUPPORTED}"
        ),
        CertificateError::BadSignature => {
            format!("a signature is wrong, or of a kind that landfall cannot verify; {SUPPORTED}")
        }
        CertificateError::Other(OtherError(cause)) => cause.to_string(),
        error => error.to_string(),
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
        // `skipVerify`; the signatures of the handshake are still verified below
        if let VerifiedHosts::Only(host) = &self.verified
            && host.as_ref() != Some(server_name)
        {
            return Ok(ServerCertVerified::assertion());
        }
        let inner = self.inner.get_or_init(|| self.root_verifier());
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
                    // accepted, or an error that is not about the certificate
                    result => return result,
                }
            }
            None => CertificateError::UnknownIssuer,
        };
        // only an identical certificate counts; its key is then proven by the handshake
        let error = if self.named.contains(end_entity) {
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
                no_roots: inner.is_none().then(why_no_roots),
            },
            // webpki's error for an authority that is used as a server certificate
            (CertificateError::Other(_), Some(own)) if own.is_self_issued() => {
                DistrustCause::Issuer { no_roots: None }
            }
            (CertificateError::Expired | CertificateError::ExpiredContext { .. }, Some(own)) => {
                DistrustCause::Other(format!("it expired at {}", own.not_after))
            }
            (
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
                Some(own),
            ) => DistrustCause::Other(format!(
                "it is not valid before {}; is this machine's clock right?",
                own.not_before
            )),
            (
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                Some(_),
            ) => {
                let names = Certificate::names(end_entity);
                let host = server_name.to_str();
                DistrustCause::Other(if names.is_empty() {
                    format!("it names no host, and the request is for {host}")
                } else if names.iter().any(|name| *name == *host) {
                    format!(
                        "it has {host} as a DNS name, not as an IP address: its `subjectAltName` \
                         needs `IP:{host}`"
                    )
                } else {
                    format!("it is for {}, not for {host}", names.join(", "))
                })
            }
            (error, _) => DistrustCause::Other(error_words(&error)),
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

/// Returns the system's certificate authorities, of which there may be none. They are read once per
/// process, although each TLS profile has its own verifier.
fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(system_certificates());
        roots
    })
}

/// Reads the certificates that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, or else those of the
/// system.
fn system_certificates() -> Vec<CertificateDer<'static>> {
    let mut found = rustls_native_certs::load_native_certs().certs;
    // read here too: the crate skips certificates after a byte order mark or without a line break
    if let Some(file) = std::env::var_os("SSL_CERT_FILE") {
        let named = read_certificates(Path::new(&file)).unwrap_or_default();
        extend_distinct(&mut found, named);
    }
    found
}

/// Why there are no certificate authorities. A variable that is set replaces those of the system,
/// even if it is empty.
fn why_no_roots() -> &'static str {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    match (is_set("SSL_CERT_FILE"), is_set("SSL_CERT_DIR")) {
        (true, _) => "SSL_CERT_FILE is set, but names no certificate authorities",
        (false, true) => "SSL_CERT_DIR is set, but names no certificate authorities",
        (false, false) => "this machine has no certificate authorities at all",
    }
}

// The fields of an X.509 certificate that messages show: subject, issuer and validity. webpki
// verifies certificates. The validity that is read here is used for verification only if the
// settings contain the server certificate itself.

/// The fields of a certificate that are shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The subject, as `CN=…, O=…`.
    pub subject: String,
    /// The issuer, in the same form.
    pub issuer: String,
    /// The first moment of its validity.
    pub not_before: Timestamp,
    /// The last moment of its validity.
    pub not_after: Timestamp,
    // The DER forms are compared: different names can have the same text.
    subject_der: Vec<u8>,
    issuer_der: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate in DER form; `None` if it cannot be parsed.
    pub fn read(der: &[u8]) -> Option<Certificate> {
        // Extensions are not shown: a bad one must not hide the other fields.
        let (_, read) = X509CertificateParser::new()
            .with_deep_parse_extensions(false)
            .parse(der)
            .ok()?;
        let subject = read.subject();
        let issuer = read.issuer();
        let validity = read.validity();
        Some(Certificate {
            subject: name_text(subject),
            issuer: name_text(issuer),
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
            subject_der: subject.as_raw().into(),
            issuer_der: issuer.as_raw().into(),
        })
    }

    /// The DNS names and addresses that a certificate in DER form is valid for.
    pub fn names(der: &[u8]) -> Vec<String> {
        let Ok((_, read)) = X509CertificateParser::new().parse(der) else {
            return Vec::new();
        };
        let Ok(Some(names)) = read.subject_alternative_name() else {
            return Vec::new();
        };
        let names = &names.value.general_names;
        names.iter().filter_map(subject_name).collect()
    }

    /// Whether the subject of the certificate is also its issuer.
    pub(crate) fn is_self_issued(&self) -> bool {
        self.subject_der == self.issuer_der
    }

    /// Whether `authority` has the name of this certificate's issuer.
    pub(crate) fn is_issued_by(&self, authority: &Certificate) -> bool {
        self.issuer_der == authority.subject_der
    }
}

/// Returns the DNS name or address in a subject alternative name.
fn subject_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        // the text comes from the server and is printed in messages
        GeneralName::DNSName(name) => Some(one_line(name)),
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(Ipv4Addr::new(a, b, c, d).to_string()),
            _ => Some(Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
        },
        // other kinds, such as email addresses, name no host
        _ => None,
    }
}

/// Returns the common attributes of a name, in the certificate's order; `(no name)` if it has none.
fn name_text(name: &X509Name<'_>) -> String {
    let labels = [
        (OID_X509_COMMON_NAME, "CN"),
        (OID_X509_COUNTRY_NAME, "C"),
        (OID_X509_ORGANIZATION_NAME, "O"),
        (OID_X509_ORGANIZATIONAL_UNIT, "OU"),
    ];
    let parts: Vec<String> = name
        .iter_attributes()
        .filter_map(|attribute| {
            let (_, label) = labels
                .iter()
                .find(|(oid, _)| oid == attribute.attr_type())?;
            // the text comes from the server and is printed in messages
            Some(format!("{label}={}", one_line(&attribute_text(attribute))))
        })
        .collect();
    if parts.is_empty() {
        "(no name)".into()
    } else {
        parts.join(", ")
    }
}

/// Returns the text of an attribute, which is UTF-16 in a `BMPString`.
fn attribute_text(attribute: &AttributeTypeAndValue<'_>) -> String {
    let bytes = attribute.as_slice();
    if attribute.attr_value().tag() == Tag::BmpString {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect();
        return String::from_utf16_lossy(&units);
    }
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_in_dns_names_are_escaped() {
        let key = rcgen::KeyPair::generate().unwrap();
        let name = "a.test\nok: trusted".to_owned();
        let made = rcgen::CertificateParams::new(vec![name])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        assert_eq!(Certificate::names(made.der()), ["a.test\\nok: trusted"]);
    }

    #[test]
    fn names_and_times_are_read() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["reg.test".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "Bücher Root");
        params
            .distinguished_name
            .push(rcgen::DnType::OrganizationName, "Corp, Inc.");
        params.not_before = rcgen::date_time_ymd(2020, 1, 2);
        params.not_after = rcgen::date_time_ymd(2051, 3, 4);
        let made = params.self_signed(&key).unwrap();
        let read = Certificate::read(made.der()).unwrap();
        assert_eq!(read.subject, "CN=Bücher Root, O=Corp, Inc.");
        assert!(read.is_self_issued() && read.is_issued_by(&read));
        assert_eq!(read.not_before.to_string(), "2020-01-02T00:00:00Z");
        assert_eq!(read.not_after.to_string(), "2051-03-04T00:00:00Z");
        // truncated anywhere, it cannot be parsed
        for end in 0..made.der().len() {
            assert_eq!(Certificate::read(&made.der()[..end]), None, "{end}");
        }
    }

    #[test]
    fn errors_have_words_and_no_identifiers() {
        let unsupported = |id: &[u8]| {
            error_words(&CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id: id.to_vec(),
                supported_algorithms: Vec::new(),
            })
        };
        let sha1 = unsupported(&[6, 9, 42, 134, 72, 134, 247, 13, 1, 1, 5, 5, 0]);
        assert!(sha1.contains("signed with SHA-1"), "{sha1}");
        let pss = unsupported(&[6, 9, 42, 134, 72, 134, 247, 13, 1, 1, 10, 48, 0]);
        let p521 = CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: vec![6, 8, 42, 134, 72, 206, 61, 4, 3, 2],
            public_key_algorithm_id: vec![6, 5, 43, 129, 4, 0, 35],
        };
        for words in [pss, error_words(&p521)] {
            assert!(
                words.contains("cannot verify; supported are RSA"),
                "{words}"
            );
        }
    }

    #[test]
    fn an_address_that_is_a_dns_name_is_explained() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        let name = "172.20.0.2".try_into().unwrap();
        params.subject_alt_names = vec![rcgen::SanType::DnsName(name)];
        let made = params.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = CertificateVerifier::new(vec![made.der().clone()], provider);
        let host = ServerName::try_from("172.20.0.2").unwrap();
        let verified = verifier.verify_server_cert(made.der(), &[], &host, &[], UnixTime::now());
        let error = format!("{:?}", verified.unwrap_err());
        assert!(
            error.contains("as a DNS name, not as an IP address"),
            "{error}"
        );
    }

    #[test]
    fn a_host_whose_certificate_is_not_verified_does_not_exempt_the_proxy() {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = ["target.test", "proxy.test"].map(str::to_owned);
        let params = rcgen::CertificateParams::new(names).unwrap();
        let made = params.self_signed(&key).unwrap();
        let accepts = |verifier: &CertificateVerifier, host: &str| {
            let host = ServerName::try_from(host).unwrap();
            let now = UnixTime::now();
            let verified = verifier.verify_server_cert(made.der(), &[], &host, &[], now);
            verified.is_ok()
        };
        let new = || {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            CertificateVerifier::new(Vec::new(), provider)
        };
        assert!(!accepts(&new(), "target.test"));
        let all = new().only_of(None);
        assert!(accepts(&all, "target.test") && accepts(&all, "proxy.test"));
        let behind = new().only_of(ServerName::try_from("Proxy.test").ok());
        assert!(accepts(&behind, "target.test") && !accepts(&behind, "proxy.test"));
    }
}
