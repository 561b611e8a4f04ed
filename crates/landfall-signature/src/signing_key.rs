//! Signs images for a site, as `cosign sign --key` does.

use crate::encrypted_key::{self, DecryptError};
use crate::statement::COSIGN_SIGN;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::Digest;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{DecodePrivateKey, EncodePublicKey};
use rsa::sha2::{Digest as _, Sha256};
use serde_json::json;

/// The media type of the bundles that this release writes.
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The payload type of in-toto statements.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A private key that signs images.
pub struct ImageSigningKey {
    key: SigningKey,
    /// The public key in DER.
    public: Vec<u8>,
}

/// Why a private key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    /// It is encrypted, but not as cosign encrypts keys.
    #[error("it is encrypted, but not by cosign")]
    Encrypted,
    /// It is encrypted, and there is no password.
    #[error("it is encrypted, and no password is given")]
    NoPassword,
    /// The password is wrong, or the key is damaged.
    #[error("the password does not decrypt it")]
    WrongPassword,
    /// It begins like an encrypted key of cosign, but is not in its format or is damaged.
    #[error("it is damaged, or not encrypted in the format of cosign")]
    Malformed,
    /// It is encrypted with scrypt parameters that are not valid or need too much memory or time.
    #[error(
        "its scrypt parameters are not valid, or need more than 512 MiB of memory or 16 passes"
    )]
    ScryptParameters,
    /// It is not an ECDSA P-256 key in PKCS#8.
    #[error("it is not an ECDSA P-256 key in PEM (PKCS#8)")]
    Unsupported,
}

impl From<DecryptError> for SigningKeyError {
    fn from(error: DecryptError) -> SigningKeyError {
        match error {
            DecryptError::Malformed => SigningKeyError::Malformed,
            DecryptError::ScryptParameters => SigningKeyError::ScryptParameters,
            DecryptError::WrongPassword => SigningKeyError::WrongPassword,
        }
    }
}

impl ImageSigningKey {
    /// Reads an ECDSA P-256 key in PEM: in PKCS#8, or as cosign encrypts it with `password`.
    ///
    /// # Errors
    /// If it is another kind of key, or the password does not decrypt it.
    pub fn from_pem(
        pem: &str,
        password: Option<&[u8]>,
    ) -> Result<ImageSigningKey, SigningKeyError> {
        let key = if encrypted_key::is_encrypted(pem) {
            let password = password.ok_or(SigningKeyError::NoPassword)?;
            SigningKey::from_pkcs8_der(&encrypted_key::decrypt(pem, password)?)
        } else if pem.contains("BEGIN ENCRYPTED") {
            return Err(SigningKeyError::Encrypted);
        } else {
            SigningKey::from_pkcs8_pem(pem)
        };
        let key = key.map_err(|_| SigningKeyError::Unsupported)?;
        let public = key.verifying_key().to_public_key_der();
        let public = public.map_err(|_| SigningKeyError::Unsupported)?.into_vec();
        Ok(ImageSigningKey { key, public })
    }

    /// Returns the SHA-256 of the public key, as locks and reports contain it.
    pub fn fingerprint(&self) -> Digest {
        Digest::sha256(&self.public)
    }

    /// Returns cosign's payload, which says that `repository` has `image`.
    pub fn payload(image: &Digest, repository: &str) -> Vec<u8> {
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": repository},
                "image": {"docker-manifest-digest": image},
                "type": "cosign container image signature",
            },
            "optional": null,
        });
        payload.to_string().into_bytes()
    }

    /// Returns the signature of `message` in base64. The same message gives the same signature.
    pub fn sign(&self, message: &[u8]) -> String {
        // by RFC 6979, without a random number
        let signature: DerSignature = self.key.sign(message);
        STANDARD.encode(signature.as_bytes())
    }

    /// Returns a Sigstore bundle that signs `image`. The same key and image give the same bytes.
    pub fn bundle(&self, image: &Digest) -> Vec<u8> {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {image.algorithm().as_str(): image.hex()}}],
            "predicateType": COSIGN_SIGN,
            "predicate": {},
        });
        let payload = statement.to_string();
        let pae = sigstore_verify::types::pae(IN_TOTO, payload.as_bytes());
        let bundle = json!({
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": {
                "publicKey": {"hint": STANDARD.encode(Sha256::digest(&self.public))},
            },
            "dsseEnvelope": {
                "payload": STANDARD.encode(payload),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": self.sign(&pae)}],
            },
        });
        bundle.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_key_of_cosign_is_reported_as_damaged() {
        let label = "ENCRYPTED SIGSTORE PRIVATE KEY";
        for body in ["%", "e30="] {
            let pem = format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
            let error = ImageSigningKey::from_pem(&pem, Some(b"")).err();
            assert_eq!(error, Some(SigningKeyError::Malformed), "{body}");
        }
    }
}
