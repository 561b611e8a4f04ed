//! Public keys of signers.

use crate::crypto;
use landfall_model::Digest;
use sigstore_verify::crypto::{KeyAlgorithm, SigningScheme, VerificationKey};
use sigstore_verify::types::{DerPublicKey, SignatureBytes};

/// A public key that may sign, with the signature schemes that it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignerKey {
    pub(crate) der: DerPublicKey,
    /// The SHA-256 of the key in DER, as other tools write it.
    pub(crate) fingerprint: String,
    schemes: &'static [SigningScheme],
}

impl SignerKey {
    /// Reads a key from PEM. Fails with a text for people if it is not a public key of a known
    /// algorithm.
    pub(crate) fn from_pem(pem: &str) -> Result<SignerKey, String> {
        crypto::install();
        let der = DerPublicKey::from_pem(pem)
            .map_err(|_| "it is not a public key in PEM (BEGIN PUBLIC KEY)".to_owned())?;
        let algorithm = KeyAlgorithm::from_spki(&der).map_err(|error| error.to_string())?;
        let schemes: &[SigningScheme] = match algorithm {
            KeyAlgorithm::EcdsaP256 => &[SigningScheme::EcdsaP256Sha256],
            // cosign 2 hashes with SHA-256, cosign 3 with SHA-384
            KeyAlgorithm::EcdsaP384 => &[
                SigningScheme::EcdsaP384Sha384,
                SigningScheme::EcdsaP384Sha256,
            ],
            KeyAlgorithm::Ed25519 => &[SigningScheme::Ed25519],
            KeyAlgorithm::Rsa => &[SigningScheme::RsaPkcs1Sha256],
            other => return Err(format!("keys of type {other:?} are not supported")),
        };
        let fingerprint = Digest::sha256(der.as_bytes()).to_string();
        Ok(SignerKey {
            der,
            fingerprint,
            schemes,
        })
    }

    /// Whether the key made `signature` over `message`.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &SignatureBytes) -> bool {
        self.schemes.iter().any(|scheme| {
            let Ok(key) = VerificationKey::from_spki_with_scheme(&self.der, *scheme) else {
                return false;
            };
            let is_ed25519 = *scheme == SigningScheme::Ed25519;
            key.verify(message, signature).is_ok()
                || is_ed25519 && crypto::is_ed25519ph(key.as_bytes(), message, signature.as_bytes())
        })
    }
}
