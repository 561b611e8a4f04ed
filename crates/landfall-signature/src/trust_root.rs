//! Sigstore's trust root: certificate authorities, logs and timestamp authorities, from a file.
//! Also the algorithms with which its signatures are verified.

use ed25519_dalek::VerifyingKey as Ed25519Key;
use jiff::Timestamp;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use rsa::{Pkcs1v15Sign, Pss, RsaPublicKey};
use sigstore_tuf::client::Updater;
use sigstore_verify::Verifier;
use sigstore_verify::crypto::{
    CryptoProvider, Error, HashContext, KeyAlgorithm, SigningScheme, install_default_provider,
};
use sigstore_verify::trust_root::TrustedRoot;
use sigstore_verify::types::HashAlgorithm;
use std::sync::{Arc, Once};

pub use sigstore_tuf::error::Error as TufError;
pub use sigstore_tuf::transport::{FetchFuture as TufFetch, Repository as TufRepository};

/// A `trusted_root.json` that was checked.
#[derive(Clone, derive_more::Debug)]
#[debug("TrustRoot {{ .. }}")]
pub(crate) struct TrustRoot {
    text: Arc<str>,
    root: Arc<TrustedRoot>,
}

impl TrustRoot {
    /// Reads a `trusted_root.json`. Fails with a message if it is not valid.
    pub(crate) fn parse(text: &str) -> Result<TrustRoot, String> {
        install();
        let root = TrustedRoot::from_json(text)
            .map_err(|error| format!("it is not a trusted_root.json: {error}"))?;
        Verifier::new(&root).map_err(|error| format!("it cannot be used: {error}"))?;
        Ok(TrustRoot {
            text: text.into(),
            root: Arc::new(root),
        })
    }

    /// A verifier with this root.
    pub(crate) fn verifier(&self) -> Verifier {
        Verifier::new(&self.root).unwrap_or_else(|_| unreachable!("`parse` accepted this root"))
    }

    /// Whether it has transparency logs. If so, signatures must be in one.
    pub(crate) fn has_logs(&self) -> bool {
        !self.root.tlogs.is_empty()
    }

    /// The roots of its certificate authorities, in DER.
    pub(crate) fn authorities(&self) -> Vec<Vec<u8>> {
        let authorities = self.root.certificate_authorities.iter();
        let roots = authorities.filter_map(|authority| authority.cert_chain.certificates.last());
        roots
            .map(|certificate| certificate.raw_bytes.as_bytes().to_vec())
            .collect()
    }

    /// The keys, in DER, of its transparency logs with inclusion promises: Rekor before version 2.
    /// Logs without them have Ed25519 keys.
    pub(crate) fn promising_logs(&self) -> Vec<Vec<u8>> {
        let keys = self.root.tlogs.iter().map(|log| &log.public_key.raw_bytes);
        keys.filter(|key| {
            let algorithm = KeyAlgorithm::from_spki(key);
            algorithm.is_ok_and(|algorithm| algorithm != KeyAlgorithm::Ed25519)
        })
        .map(|key| key.as_bytes().to_vec())
        .collect()
    }

    /// The URLs of its transparency logs.
    pub(crate) fn log_urls(&self) -> impl Iterator<Item = &str> {
        self.root.tlogs.iter().map(|log| log.base_url.as_str())
    }

    /// Whether it has certificate transparency logs. If so, certificates must be in one.
    pub(crate) fn has_certificate_logs(&self) -> bool {
        !self.root.ctlogs.is_empty()
    }
}

impl PartialEq for TrustRoot {
    fn eq(&self, other: &TrustRoot) -> bool {
        self.text == other.text
    }
}

impl Eq for TrustRoot {}

// Newer trust roots from a TUF repository (theupdateframework.io). The caller fetches the files;
// nothing here uses the network.

/// The target with the trust root in Sigstore's TUF repositories.
const TARGET: &str = "trusted_root.json";

/// The newest trust root of a TUF repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestTrustRoot {
    /// The `trusted_root.json`.
    pub trusted_root: String,
    /// The newest `root.json` of the TUF repository.
    pub tuf_root: String,
}

/// Fetches the newest trust root from `repository`, and verifies it by the keys in `tuf_root`, a
/// `root.json`. Metadata that has expired at `now` is refused.
///
/// # Errors
/// If a file cannot be fetched or is not signed by these keys, or the trust root cannot be used.
pub async fn newest_trust_root(
    repository: impl TufRepository + 'static,
    tuf_root: &str,
    now: Timestamp,
) -> Result<NewestTrustRoot, String> {
    install();
    let mut updater = Updater::new(repository, tuf_root.as_bytes()).map_err(with_causes)?;
    updater.refresh(now).await.map_err(with_causes)?;
    let target = updater.get_target(TARGET, now).await.map_err(with_causes)?;
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map(str::to_owned);
        text.map_err(|error| error.to_string())
    };
    let trusted_root = text(&target)?;
    TrustRoot::parse(&trusted_root).map_err(|why| format!("{TARGET}: {why}"))?;
    Ok(NewestTrustRoot {
        trusted_root,
        tuf_root: text(updater.trusted().root_bytes())?,
    })
}

/// The error with its causes, which its own text does not name.
fn with_causes(error: TufError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

// Implements the algorithms that `sigstore-verify` needs, with the crates that OpenPGP also uses.
// The algorithms are used with public keys only, so no secret is handled here.

/// Makes `sigstore-verify` use these algorithms. Every function that calls `sigstore-verify` must
/// call this function first.
pub(crate) fn install() {
    static INSTALL: Once = Once::new();
    // only another program that uses this library could have installed a different provider
    INSTALL.call_once(|| {
        let _ = install_default_provider(&RustCrypto);
    });
}

#[derive(Debug)]
struct RustCrypto;

struct RunningHash<D>(D);

impl<D: Digest + Send> HashContext for RunningHash<D> {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finalize().to_vec()
    }
}

impl CryptoProvider for RustCrypto {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>, Error> {
        Ok(match algorithm {
            HashAlgorithm::Sha2256 => Box::new(RunningHash(Sha256::new())),
            HashAlgorithm::Sha2384 => Box::new(RunningHash(Sha384::new())),
            HashAlgorithm::Sha2512 => Box::new(RunningHash(Sha512::new())),
            other => return Err(Error::UnsupportedAlgorithm(other.to_string())),
        })
    }

    fn verify_raw(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Result<(), Error> {
        let Some(algorithm) = scheme.hash_algorithm() else {
            return verify_ed25519(scheme, key, data, signature);
        };
        let mut hash = self.hash(algorithm)?;
        hash.update(data);
        self.verify_prehashed(scheme, key, &hash.finalize(), signature)
    }

    fn verify_prehashed(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), Error> {
        let is_valid = match scheme {
            SigningScheme::EcdsaP256Sha256 | SigningScheme::EcdsaP256Sha384 => {
                let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key).map_err(bad_key)?;
                p256::ecdsa::DerSignature::try_from(signature)
                    .is_ok_and(|signature| key.verify_prehash(digest, &signature).is_ok())
            }
            SigningScheme::EcdsaP384Sha256 | SigningScheme::EcdsaP384Sha384 => {
                let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key).map_err(bad_key)?;
                p384::ecdsa::DerSignature::try_from(signature)
                    .is_ok_and(|signature| key.verify_prehash(digest, &signature).is_ok())
            }
            SigningScheme::RsaPkcs1Sha256 => {
                verify_rsa(key, Pkcs1v15Sign::new::<Sha256>(), digest, signature)?
            }
            SigningScheme::RsaPkcs1Sha384 => {
                verify_rsa(key, Pkcs1v15Sign::new::<Sha384>(), digest, signature)?
            }
            SigningScheme::RsaPkcs1Sha512 => {
                verify_rsa(key, Pkcs1v15Sign::new::<Sha512>(), digest, signature)?
            }
            SigningScheme::RsaPssSha256 => {
                verify_rsa(key, Pss::new::<Sha256>(), digest, signature)?
            }
            SigningScheme::RsaPssSha384 => {
                verify_rsa(key, Pss::new::<Sha384>(), digest, signature)?
            }
            SigningScheme::RsaPssSha512 => {
                verify_rsa(key, Pss::new::<Sha512>(), digest, signature)?
            }
            other => return Err(Error::UnsupportedAlgorithm(other.name().into())),
        };
        check(is_valid, scheme)
    }
}

fn verify_ed25519(
    scheme: SigningScheme,
    key: &[u8],
    data: &[u8],
    signature: &[u8],
) -> Result<(), Error> {
    if scheme != SigningScheme::Ed25519 {
        return Err(Error::UnsupportedAlgorithm(scheme.name().into()));
    }
    let key = Ed25519Key::try_from(key).map_err(bad_key)?;
    let is_valid = ed25519_dalek::Signature::from_slice(signature)
        .is_ok_and(|signature| key.verify_strict(data, &signature).is_ok());
    check(is_valid, scheme)
}

/// Whether a signature by Ed25519ph (RFC 8032) over the content with this hash is valid.
pub(crate) fn is_ed25519ph(key: &[u8], hash: Sha512, signature: &[u8]) -> bool {
    match (
        Ed25519Key::try_from(key),
        ed25519_dalek::Signature::from_slice(signature),
    ) {
        (Ok(key), Ok(signature)) => key.verify_prehashed_strict(hash, None, &signature).is_ok(),
        _ => false,
    }
}

/// Whether an RSA signature is valid. Keys of more than 4096 bits are refused.
fn verify_rsa(
    key: &[u8],
    padding: impl rsa::traits::SignatureScheme,
    digest: &[u8],
    signature: &[u8],
) -> Result<bool, Error> {
    let key = RsaPublicKey::from_pkcs1_der(key).map_err(bad_key)?;
    Ok(key.verify(padding, digest, signature).is_ok())
}

fn bad_key(error: impl std::fmt::Display) -> Error {
    Error::InvalidKey(error.to_string())
}

fn check(is_valid: bool, scheme: SigningScheme) -> Result<(), Error> {
    if is_valid {
        Ok(())
    } else {
        let name = scheme.name();
        Err(Error::Verification(format!("invalid {name} signature")))
    }
}
