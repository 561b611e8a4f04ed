//! The HTTP clients: one for each combination of TLS settings, proxy and address scope.

use crate::ecdsa;
use crate::error::{ErrorKind, HttpError, describe};
use crate::private_targets::PublicOnly;
use crate::proxy::{ProxyAccount, ProxyUrl};
use crate::transport::{AddressScope, ClientKey, Transport};
use crate::verifier::{Certificate, CertificateVerifier};
use landfall_model::document::utf16_units;
use landfall_model::{Digest, locked, without_brackets};
use reqwest::redirect::Policy;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;

impl Transport {
    /// Returns the client for the host of `url` on this route. Fails if a file of the TLS settings
    /// cannot be used.
    pub(super) fn client(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        scope: AddressScope,
    ) -> Result<reqwest::Client, HttpError> {
        let key = self.client_key(url, route, scope);
        // locked until the client is stored, so that each is created once and its connections are
        // shared
        let mut clients = locked(&self.0.clients);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let tls = key.tls.config(route).map_err(|error| {
            HttpError::new(ErrorKind::Local, error.to_string()).caused_by(error)
        })?;
        // Redirects are followed by `Transport::follow`, which keeps `Authorization` at its host.
        // HTTP/1.1 only: HTTP/2 multiplexes all streams over one connection, which cannot fill a
        // fast link.
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            // nginx sends values of several lines as they are configured, and clients must accept
            // them (RFC 9112, 5.2)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            // some firewalls send cookies with control characters; like curl and browsers, landfall
            // ignores lines that are no header, and reads names with a blank before the colon
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            // gateways add a header for each rule or cookie; the size of all stays limited
            .http1_max_headers(500)
            // reqwest would read the proxy variables itself; `ProxyRules` decides instead
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(self.limits().connect)
            .tcp_nodelay(true)
            .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")));
        if let AddressScope::Public { port } = scope {
            let allowed = self.0.config.private_targets.clone();
            let resolver = PublicOnly { allowed, port };
            builder = builder.dns_resolver(Arc::new(resolver));
        }
        if let Some(proxy) = route {
            let mut all = reqwest::Proxy::all(proxy.url.clone()).map_err(unusable_client)?;
            if let Some(account) = &proxy.account {
                all = all.basic_auth(&account.user, &account.password);
            }
            builder = builder.proxy(all);
        }
        let client = builder.build().map_err(unusable_client)?;
        clients.insert(key, client.clone());
        Ok(client)
    }

    /// The settings of the client for this host and route.
    fn client_key(&self, url: &Url, route: Option<&ProxyUrl>, scope: AddressScope) -> ClientKey {
        let account = route.and_then(|proxy| proxy.account.as_ref());
        ClientKey {
            tls: self.tls_profile(url, route),
            proxy: route.map(|proxy| proxy.url.to_string()),
            proxy_account: account.map(|account| {
                // the length shows where the user name ends, whatever it contains
                let ProxyAccount { user, password, .. } = account;
                Digest::sha256(format!("{} {user}{password}", user.len()).as_bytes())
            }),
            scope,
        }
    }
}

fn unusable_client(error: reqwest::Error) -> HttpError {
    HttpError::new(ErrorKind::Local, describe(&error)).caused_by(error)
}

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
#[error("{message}")]
pub struct TlsError {
    message: String,
    /// The file that cannot be used, if the error is about one.
    pub path: Option<PathBuf>,
}

impl TlsError {
    fn about(path: &Path, message: impl Into<String>) -> TlsError {
        TlsError {
            message: message.into(),
            path: Some(path.into()),
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
            self.config(None).map(drop)
        }
    }

    /// Returns the configuration of rustls for the host of this profile and the proxy before it.
    pub(super) fn config(&self, proxy: Option<&ProxyUrl>) -> Result<ClientConfig, TlsError> {
        // set explicitly: otherwise rustls uses the default provider of the process, which must
        // have been installed before
        let provider = ecdsa::provider();
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError {
                message: format!("cannot set up TLS: {error}"),
                path: None,
            })?;
        // The proxy gets an account, and `skipVerify` is about the host behind it.
        let proxy = proxy.filter(|proxy| proxy.url.scheme() == "https");
        let proxy_name = proxy.and_then(|proxy| {
            let host = without_brackets(proxy.url.host_str()?).to_owned();
            ServerName::try_from(host).ok()
        });
        let mut named = Vec::new();
        if !self.skip_verify || proxy_name.is_some() {
            for path in &self.ca {
                let added = named_certificates(path)?;
                let (good, bad) =
                    RootCertStore::empty().add_parsable_certificates(added.iter().cloned());
                // if an unusable authority were skipped silently, the certificates that it
                // issued would be rejected later
                if good == 0 || bad > 0 {
                    let file = path.display();
                    let message = format!(
                        "{file} contains a certificate that cannot be used as an authority"
                    );
                    return Err(TlsError::about(path, message));
                }
                named.extend(added);
            }
        }
        let mut verifier = CertificateVerifier::new(named, provider);
        if self.skip_verify {
            verifier = verifier.only_of(proxy_name);
        }
        // rustls calls any custom verifier dangerous; ours delegates to webpki unless `skipVerify`
        // is set
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let Some((certificate, key)) = &self.client else {
            return Ok(builder.with_no_client_auth());
        };
        let key = read_private_key(key).map_err(|why| {
            let file = key.display();
            TlsError::about(key, format!("cannot read the client key {file}: {why}"))
        })?;
        builder
            .with_client_auth_cert(named_certificates(certificate)?, key)
            .map_err(|error| {
                let file = certificate.display();
                let message = format!("cannot use the client certificate {file}: {error}");
                TlsError::about(certificate, message)
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

/// Returns the certificates in the file that a setting names, at least one.
fn named_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = path.display();
    match read_certificates(path) {
        Ok(list) if list.is_empty() => Err(TlsError::about(
            path,
            format!("{file} contains no certificate in PEM form"),
        )),
        Ok(list) => Ok(list),
        Err(error) => Err(TlsError::about(
            path,
            format!("cannot read certificates from {file}: {error}"),
        )),
    }
}

/// Reads all certificates in a PEM file.
///
/// # Errors
/// If the file cannot be read, or a section of it is damaged. The error is a message without the
/// name of the file.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let sections = pem_sections(&std::fs::read(path).map_err(|error| error.to_string())?);
    let certificates = CertificateDer::pem_slice_iter(&sections);
    let read: Result<_, pem::Error> = certificates.collect();
    read.map_err(|_| DAMAGED.to_owned())
}

/// Why a PEM file cannot be read. The error of the library has the bytes of a line, which can be a
/// whole private key.
const DAMAGED: &str = "a block in PEM form is damaged: its first line must be `-----BEGIN …-----`, \
                       its last line `-----END …-----`, and all between them base64";

/// Reads the private key in a PEM file.
///
/// # Errors
/// If the file cannot be read, or has no private key that is not encrypted. The error is a message
/// without the name of the file.
pub fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let sections = pem_sections(&std::fs::read(path).map_err(|error| error.to_string())?);
    PrivateKeyDer::from_pem_slice(&sections).map_err(|error| {
        // as a section of its own kind, or by a header in a section of the older kinds
        if String::from_utf8_lossy(&sections).contains("ENCRYPTED") {
            return "it is encrypted; `openssl pkey -in KEY -out NEW` removes the passphrase"
                .into();
        }
        match error {
            pem::Error::NoItemsFound => "it contains no private key in PEM form".into(),
            _ => DAMAGED.into(),
        }
    })
}

/// Returns a PEM file in UTF-8 whose sections begin on lines of their own. A section after a byte
/// order mark, or after another file that does not end with a line break, would be skipped without
/// an error.
fn pem_sections(file: &[u8]) -> Vec<u8> {
    let text = match utf16_units(file) {
        // `>` of PowerShell
        Some(units) => String::from_utf16_lossy(&units),
        // comments may have any encoding
        None => String::from_utf8_lossy(file).into_owned(),
    };
    let text = text.replace('\u{feff}', "");
    text.replace("----------BEGIN ", "-----\n-----BEGIN ")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::TransportConfig;

    #[test]
    fn accounts_at_one_proxy_have_their_own_clients() {
        let transport = Transport::new(TransportConfig::default());
        let url: Url = "https://r.test/".parse().unwrap();
        let key = |user: &str, password: &str| {
            let account = ProxyAccount {
                user: user.into(),
                password: password.into(),
                source: String::new(),
            };
            let route = ProxyUrl {
                url: "http://proxy.test:3128".parse().unwrap(),
                account: Some(account).filter(|_| !user.is_empty()),
                source: String::new(),
            };
            transport.client_key(&url, Some(&route), AddressScope::Any)
        };
        assert_eq!(key("anna", "one"), key("anna", "one"));
        for (user, password) in [("otto", "one"), ("anna", "two"), ("", "")] {
            assert_ne!(key("anna", "one"), key(user, password), "{user} {password}");
        }
        // a URL may contain any character in escaped form
        assert_ne!(key("anna\n1", "one"), key("anna", "1\none"));
        assert_ne!(key("anna", "one"), key("annao", "ne"));
        assert!(!format!("{:?}", key("anna", "hush")).contains("hush"));
    }

    #[test]
    fn the_authorities_of_an_https_proxy_are_read_although_the_host_needs_none() {
        let profile = TlsProfile {
            ca: vec!["/nowhere/ca.crt".into()],
            skip_verify: true,
            ..TlsProfile::default()
        };
        for (proxy, is_verified) in [("http://p.test:1", false), ("https://p.test:1", true)] {
            let proxy = ProxyUrl::parse(proxy, "HTTPS_PROXY").unwrap();
            let config = profile.config(Some(&proxy));
            assert_eq!(config.is_err(), is_verified);
        }
    }

    #[test]
    fn no_section_of_a_pem_file_is_skipped() {
        let one = "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----";
        let two = one.replace("AAEC", "AwQF");
        let mark = '\u{feff}';
        let utf16 = |text: &str| -> Vec<u8> {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        for file in [
            format!("{one}\n{two}").into_bytes(),
            format!("{one}{two}").into_bytes(),
            format!("{mark}{one}{two}\r\n").into_bytes(),
            format!("{one}\r\n{mark}{two}\n").into_bytes(),
            format!("# -----BEGIN CERTIFICATE----- of\n{one}\n\n{two}").into_bytes(),
            [&b"# \xfc\n"[..], one.as_bytes(), b"\n", two.as_bytes()].concat(),
            utf16(&format!("{one}\r\n{two}\r\n")),
        ] {
            let sections = pem_sections(&file);
            let read: Vec<_> = CertificateDer::pem_slice_iter(&sections)
                .map(|read| read.unwrap().to_vec())
                .collect();
            let name = String::from_utf8_lossy(&file);
            assert_eq!(read, [[0, 1, 2], [3, 4, 5]], "{name}");
        }
    }
}
