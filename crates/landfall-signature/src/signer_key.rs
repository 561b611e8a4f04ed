//! Public keys of signers.

use crate::crypto;
use crate::file_signatures::SignedFile;
use crate::statement::{SignedMessage, sha256_hash, unreadable};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::{Digest, for_each_chunk};
use rsa::sha2::{Digest as _, Sha384, Sha512};
use sigstore_verify::crypto::{KeyAlgorithm, SigningScheme, VerificationKey};
use sigstore_verify::types::{DerPublicKey, HashAlgorithm, SignatureBytes};
use std::io::{self, Read};

/// The maximum size in bytes of a file that an Ed25519 key signed without a hash. Verifying such a
/// signature needs the whole file in memory.
const MAX_UNHASHED_FILE: u64 = 64 << 20;

/// A public key that may sign, with the signature schemes that it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignerKey {
    pub(crate) der: DerPublicKey,
    /// The SHA-256 of the key in DER, as other tools write it.
    pub(crate) fingerprint: String,
    schemes: &'static [SigningScheme],
}

impl SignerKey {
    /// Reads a key from PEM. Fails with a message if it is not a public key of a known algorithm.
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

    /// The key in PEM, as transparency logs store it.
    pub(crate) fn pem(&self) -> String {
        pem("PUBLIC KEY", self.der.as_bytes())
    }

    /// Whether the key made `signature` over `message`. Fails with a message if the content of a
    /// file cannot be read, or is too large for an Ed25519 signature that is not prehashed.
    pub(crate) fn has_signed(
        &self,
        message: &SignedMessage<'_>,
        signature: &SignatureBytes,
    ) -> Result<bool, String> {
        for scheme in self.schemes {
            let Ok(key) = VerificationKey::from_spki_with_scheme(&self.der, *scheme) else {
                continue;
            };
            let is_valid = match message {
                SignedMessage::Statement { bytes, .. } | SignedMessage::Payload(bytes) => {
                    has_signed_bytes(&key, bytes, signature)
                }
                SignedMessage::File { file, .. } => has_signed_file(&key, file, signature)?,
            };
            if is_valid {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn has_signed_bytes(key: &VerificationKey, bytes: &[u8], signature: &SignatureBytes) -> bool {
    key.verify(bytes, signature).is_ok() || {
        let hash = Sha512::new_with_prefix(bytes);
        is_ed25519ph(key, hash, signature)
    }
}

fn has_signed_file(
    key: &VerificationKey,
    file: &SignedFile<'_>,
    signature: &SignatureBytes,
) -> Result<bool, String> {
    let digest = match key.scheme().hash_algorithm() {
        Some(HashAlgorithm::Sha2256) => sha256_hash(file.digest)?.as_bytes().to_vec(),
        Some(HashAlgorithm::Sha2384) => hash_of::<Sha384>(file)?.finalize().to_vec(),
        Some(_) => return Ok(false),
        None => {
            if is_ed25519ph(key, hash_of(file)?, signature) {
                return Ok(true);
            }
            let mut bytes = Vec::new();
            let content = file.content()?;
            content
                .take(MAX_UNHASHED_FILE + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| unreadable(&error))?;
            if bytes.len() as u64 > MAX_UNHASHED_FILE {
                return Err("a non-prehashed Ed25519 signature of a file over 64 MiB".into());
            }
            return Ok(key.verify(&bytes, signature).is_ok());
        }
    };
    Ok(key.verify_prehashed(&digest, signature).is_ok())
}

/// The hash of the content of a file.
fn hash_of<D: rsa::sha2::Digest>(file: &SignedFile<'_>) -> Result<D, String> {
    let mut hash = D::new();
    let mut content = file.content()?;
    for_each_chunk(&mut content, |chunk| {
        hash.update(chunk);
        Ok(())
    })
    .map_err(|error: io::Error| unreadable(&error))?;
    Ok(hash)
}

/// Whether this is a valid signature by Ed25519ph (RFC 8032), which cosign 3 uses with Ed25519
/// keys.
fn is_ed25519ph(key: &VerificationKey, hash: Sha512, signature: &SignatureBytes) -> bool {
    key.scheme() == SigningScheme::Ed25519
        && crypto::is_ed25519ph(key.as_bytes(), hash, signature.as_bytes())
}

// Certificates and keys in PEM (RFC 7468).

/// The line before a certificate.
pub(crate) const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Encodes `der` as PEM, with lines of 64 characters, as transparency logs store it.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}
