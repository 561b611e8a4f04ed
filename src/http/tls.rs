//! Trust: system roots where they exist, certificate authorities of the site and of certs.d folders,
//! client certificates.

use super::certificate::Certificate;
use super::trust::Checked;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// How one host is trusted, and how it knows us.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsProfile {
    /// PEM files of certificate authorities, added to the system's.
    pub ca: Vec<PathBuf>,
    /// PEM files of client certificate and key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Accept any certificate.
    pub skip_verify: bool,
}

impl TlsProfile {
    /// Whether nothing is configured.
    pub fn is_default(&self) -> bool {
        *self == TlsProfile::default()
    }

    /// Whether the files that are named can be used.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub fn check(&self) -> Result<(), String> {
        if self.is_default() { Ok(()) } else { self.config().map(drop) }
    }

    /// The client side of TLS for this profile.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot set up TLS: {error}"))?;
        let builder = if self.skip_verify {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        } else {
            let (mut roots, mut named) = (system_roots().clone(), Vec::new());
            for path in &self.ca {
                let added = read_certificates(path)?;
                named.extend(added.iter().cloned());
                let (good, bad) = roots.add_parsable_certificates(added);
                if good == 0 || bad > 0 {
                    return Err(format!("{} holds no usable certificate authority", path.display()));
                }
            }
            let checked = Arc::new(Checked::new(roots, named, provider)?);
            builder.dangerous().with_custom_certificate_verifier(checked)
        };
        let Some((certificate, key)) = &self.client else { return Ok(builder.with_no_client_auth()) };
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| format!("cannot read the client key {}: {error}", key.display()))?;
        builder
            .with_client_auth_cert(read_certificates(certificate)?, key)
            .map_err(|error| format!("cannot use the client certificate {}: {error}", certificate.display()))
    }

    /// What vouches for a chain that was accepted, in words.
    pub(super) fn voucher(&self, chain: &[Certificate]) -> String {
        if self.skip_verify {
            return "nothing: skipVerify accepts any".into();
        }
        let vouches = |path: &&PathBuf| {
            let list = read_certificates(path).unwrap_or_default();
            let mut authorities = list.iter().filter_map(|der| Certificate::read(der));
            authorities.any(|authority| chain.iter().any(|sent| sent.is_issued_by(&authority)))
        };
        match self.ca.iter().find(vouches) {
            Some(path) => path.display().to_string(),
            None => "the system's authorities".into(),
        }
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error| format!("cannot read certificates from {}: {error}", path.display());
    let list: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)?;
    if list.is_empty() {
        Err(format!("{} holds no certificate in PEM form", path.display()))
    } else {
        Ok(list)
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

/// Accepts any certificate: only for hosts that the user named with `skipVerify`.
#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
