//! Implements the algorithms that `sigstore-verify` needs, with the crates that OpenPGP also uses.
//! The algorithms are used with public keys only, so no secret is handled here.

use ed25519_dalek::VerifyingKey as Ed25519Key;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use rsa::{Pkcs1v15Sign, Pss, RsaPublicKey};
use sigstore_verify::crypto::{
    CryptoProvider, Error, HashContext, SigningScheme, install_default_provider,
};
use sigstore_verify::types::HashAlgorithm;
use std::sync::Once;

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
