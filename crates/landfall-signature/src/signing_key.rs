//! Keys: the public keys of signers, and the private key that signs images for a site, as `cosign
//! sign --key` does.

use crate::file_signatures::SignedFile;
use crate::trust_root;
use crate::verified::{COSIGN_SIGN, SignedMessage, sha256_hash, unreadable};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crypto_secretbox::aead::{Aead, KeyInit};
use crypto_secretbox::{Key, Nonce, XSalsa20Poly1305};
use landfall_model::sign::armor;
use landfall_model::{Digest, Failure, read_chunks};
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{DecodePrivateKey, EncodePublicKey};
use rsa::sha2::{Digest as _, Sha256, Sha384, Sha512};
use scrypt::Params;
use serde_json::{Value, json};
use sigstore_verify::crypto::{KeyAlgorithm, SigningScheme, VerificationKey};
use sigstore_verify::types::{DerPublicKey, HashAlgorithm, SignatureBytes};
use std::io::Read;

// Public keys of signers.

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
        trust_root::install();
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
    read_chunks(&mut content, |chunk| hash.update(chunk)).map_err(|error| unreadable(&error))?;
    Ok(hash)
}

/// Whether this is a valid signature by Ed25519ph (RFC 8032), which cosign 3 uses with Ed25519
/// keys.
fn is_ed25519ph(key: &VerificationKey, hash: Sha512, signature: &SignatureBytes) -> bool {
    key.scheme() == SigningScheme::Ed25519
        && trust_root::is_ed25519ph(key.as_bytes(), hash, signature.as_bytes())
}

// Certificates and keys in PEM (RFC 7468).

/// The line before a certificate.
pub(crate) const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Encodes `der` as PEM, with lines of 64 characters, as transparency logs store it.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    armor(label, der, 64)
}

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

fn unsupported() -> Failure {
    Failure::usage("it is not an ECDSA P-256 key in PEM (PKCS#8)")
        .with_help("`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` makes one")
}

impl ImageSigningKey {
    /// Reads an ECDSA P-256 key in PEM: in PKCS#8, or as cosign encrypts it with `password`.
    ///
    /// # Errors
    /// If it is another kind of key, or the password does not decrypt it.
    pub fn from_pem(pem: &str, password: Option<&[u8]>) -> Result<ImageSigningKey, Failure> {
        let key = if is_encrypted(pem) {
            let password = password.ok_or_else(|| {
                Failure::usage("it is encrypted, and no password is given")
                    .with_help("set COSIGN_PASSWORD, or name a file with --sign-images-password")
            })?;
            SigningKey::from_pkcs8_der(&decrypt(pem, password)?)
        } else if pem.contains("BEGIN ENCRYPTED") {
            return Err(
                Failure::usage("it is encrypted, but not by cosign").with_help(
                    "decrypt it with `openssl pkcs8`, and let only the user of landfall read the \
                     new file",
                ),
            );
        } else {
            SigningKey::from_pkcs8_pem(pem)
        };
        let key = key.map_err(|_| unsupported())?;
        let public = key.verifying_key().to_public_key_der();
        let public = public.map_err(|_| unsupported())?.into_vec();
        Ok(ImageSigningKey { key, public })
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

// Private keys that cosign has encrypted with a password: a JSON document in PEM, with scrypt and
// the secret box of libsodium (go-securesystemslib, `encrypted`).

/// The labels of cosign 2 and 3, and of earlier releases.
const LABELS: [&str; 2] = [
    "ENCRYPTED SIGSTORE PRIVATE KEY",
    "ENCRYPTED COSIGN PRIVATE KEY",
];

/// The maximum memory of scrypt: 128 × r × (N + p + 1) bytes. cosign's keys need 64 MiB.
const MAX_MEMORY: u64 = 512 << 20;

/// The maximum of scrypt's parameter `p`, which multiplies the time for deriving a key.
const MAX_PARALLEL: u32 = 16;

fn malformed() -> Failure {
    Failure::usage("it is damaged, or not encrypted in the format of cosign")
        .with_help("restore the file, or make a new key with `cosign generate-key-pair`")
}

fn invalid_scrypt_parameters() -> Failure {
    Failure::usage(
        "its scrypt parameters are not valid, or need more than 512 MiB of memory or 16 passes",
    )
    .with_help("`cosign generate-key-pair` makes a key with parameters within these limits")
}

fn wrong_password() -> Failure {
    Failure::usage("the password does not decrypt it")
        .with_help("check COSIGN_PASSWORD or the file of --sign-images-password")
}

/// Whether `pem` is a key that cosign has encrypted.
pub(crate) fn is_encrypted(pem: &str) -> bool {
    LABELS
        .iter()
        .any(|label| pem.contains(&format!("-----BEGIN {label}-----")))
}

/// Decrypts a key. Returns it in DER (PKCS#8).
pub(crate) fn decrypt(pem: &str, password: &[u8]) -> Result<Vec<u8>, Failure> {
    let body: String = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| malformed());
    let document: Value = serde_json::from_slice(&decode(&body)?).map_err(|_| malformed())?;
    let text = |at| {
        document
            .pointer(at)
            .and_then(Value::as_str)
            .ok_or_else(malformed)
    };
    let number = |at| {
        document
            .pointer(at)
            .and_then(Value::as_u64)
            .ok_or_else(malformed)
    };
    let small = |at| u32::try_from(number(at)?).map_err(|_| malformed());
    if text("/kdf/name")? != "scrypt" || text("/cipher/name")? != "nacl/secretbox" {
        return Err(malformed());
    }
    let nonce = <[u8; 24]>::try_from(decode(text("/cipher/nonce")?)?).map_err(|_| malformed())?;
    let mut key = Key::default();
    let (n, r, p) = (
        number("/kdf/params/N")?,
        small("/kdf/params/r")?,
        small("/kdf/params/p")?,
    );
    let params = scrypt_params(n, r, p).ok_or_else(invalid_scrypt_parameters)?;
    let salt = decode(text("/kdf/salt")?)?;
    scrypt::scrypt(password, &salt, &params, &mut key).map_err(|_| malformed())?;
    XSalsa20Poly1305::new(&key)
        .decrypt(&Nonce::from(nonce), &*decode(text("/ciphertext")?)?)
        .map_err(|_| wrong_password())
}

/// The parameters, within limits: a key file could demand any amount of memory and time.
fn scrypt_params(n: u64, r: u32, p: u32) -> Option<Params> {
    // the table of N blocks, the p blocks to mix, and one block of working memory
    let blocks = n.checked_add(u64::from(p) + 1)?;
    let memory = blocks.checked_mul(u64::from(r))?.checked_mul(128)?;
    if !n.is_power_of_two() || memory > MAX_MEMORY || p > MAX_PARALLEL {
        return None;
    }
    let log_n = u8::try_from(n.trailing_zeros()).ok()?;
    Params::new(log_n, r, p, 32).ok()
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
            assert_eq!(error, Some(malformed()), "{body}");
        }
    }

    /// An encrypted key in PEM. The text names the parameters `cost` (N, r and p), but the key is
    /// always encrypted with N = 16, r = 8 and p = 1.
    fn encrypted(content: &[u8], password: &[u8], cost: (u64, u32, u32)) -> String {
        let (n, r, p) = cost;
        let mut key = Key::default();
        let params = Params::new(4, 8, 1, 32).unwrap();
        scrypt::scrypt(password, b"salt", &params, &mut key).unwrap();
        let sealed = XSalsa20Poly1305::new(&key)
            .encrypt(&Nonce::from([7; 24]), content)
            .unwrap();
        let json = serde_json::json!({
            "kdf": {
                "name": "scrypt", "params": {"N": n, "r": r, "p": p},
                "salt": STANDARD.encode("salt"),
            },
            "cipher": {"name": "nacl/secretbox", "nonce": STANDARD.encode([7; 24])},
            "ciphertext": STANDARD.encode(sealed),
        });
        let label = LABELS[0];
        let body = STANDARD.encode(json.to_string());
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn only_the_right_password_decrypts_a_key() {
        let pem = encrypted(b"key", b"secret", (16, 8, 1));
        assert!(is_encrypted(&pem));
        assert_eq!(decrypt(&pem, b"secret"), Ok(b"key".to_vec()));
        assert_eq!(decrypt(&pem, b""), Err(wrong_password()));
    }

    #[test]
    fn a_key_with_invalid_or_too_costly_scrypt_parameters_is_refused() {
        for cost in [
            (1 << 40, 8, 1),
            (16, u32::MAX, 1),
            (16, 8, 1 << 20),
            (1, 1 << 22, 16),
            (15, 8, 1),
            (0, 8, 1),
        ] {
            let pem = encrypted(b"key", b"secret", cost);
            assert_eq!(
                decrypt(&pem, b"secret"),
                Err(invalid_scrypt_parameters()),
                "{cost:?}"
            );
        }
        let label = LABELS[1];
        let pem = format!("-----BEGIN {label}-----\ne30=\n-----END {label}-----\n");
        assert!(is_encrypted(&pem) && decrypt(&pem, b"") == Err(malformed()));
    }
}
