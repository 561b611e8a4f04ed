//! Signs images for a site, as `cosign sign --key` does.

use crate::statement::COSIGN_SIGN;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crypto_secretbox::aead::{Aead, KeyInit};
use crypto_secretbox::{Key, Nonce, XSalsa20Poly1305};
use landfall_model::{Digest, Failure};
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{DecodePrivateKey, EncodePublicKey};
use rsa::sha2::{Digest as _, Sha256};
use scrypt::Params;
use serde::Deserialize;
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

fn not_decrypted(error: DecryptError) -> Failure {
    let (why, help) = match error {
        DecryptError::Malformed => (
            "it is damaged, or not encrypted in the format of cosign",
            "restore the file, or make a new key with `cosign generate-key-pair`",
        ),
        DecryptError::ScryptParameters => (
            "its scrypt parameters are not valid, or need more than 512 MiB of memory or 16 passes",
            "`cosign generate-key-pair` makes a key with parameters within these limits",
        ),
        DecryptError::WrongPassword => (
            "the password does not decrypt it",
            "check COSIGN_PASSWORD or the file of --sign-images-password",
        ),
    };
    Failure::usage(why).with_help(help)
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
            SigningKey::from_pkcs8_der(&decrypt(pem, password).map_err(not_decrypted)?)
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

#[derive(Deserialize)]
struct EncryptedKey {
    kdf: KeyDerivation,
    cipher: KeyCipher,
    ciphertext: String,
}

#[derive(Deserialize)]
struct KeyDerivation {
    name: String,
    params: ScryptCost,
    salt: String,
}

#[derive(Deserialize)]
struct ScryptCost {
    #[serde(rename = "N")]
    n: u64,
    r: u32,
    p: u32,
}

#[derive(Deserialize)]
struct KeyCipher {
    name: String,
    nonce: String,
}

/// Why an encrypted key cannot be decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecryptError {
    /// It is not in cosign's format, or it is damaged.
    Malformed,
    /// Its scrypt parameters are not valid, or need too much memory or time.
    ScryptParameters,
    /// The password is wrong, or the key is damaged.
    WrongPassword,
}

/// Whether `pem` is a key that cosign has encrypted.
pub(crate) fn is_encrypted(pem: &str) -> bool {
    LABELS
        .iter()
        .any(|label| pem.contains(&format!("-----BEGIN {label}-----")))
}

/// Decrypts a key. Returns it in DER (PKCS#8).
pub(crate) fn decrypt(pem: &str, password: &[u8]) -> Result<Vec<u8>, DecryptError> {
    let malformed = DecryptError::Malformed;
    let body: String = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| malformed);
    let EncryptedKey {
        kdf,
        cipher,
        ciphertext,
    } = serde_json::from_slice(&decode(&body)?).map_err(|_| malformed)?;
    if kdf.name != "scrypt" || cipher.name != "nacl/secretbox" {
        return Err(malformed);
    }
    let nonce = <[u8; 24]>::try_from(decode(&cipher.nonce)?).map_err(|_| malformed)?;
    let mut key = Key::default();
    let params = scrypt_params(&kdf.params).ok_or(DecryptError::ScryptParameters)?;
    scrypt::scrypt(password, &decode(&kdf.salt)?, &params, &mut key).map_err(|_| malformed)?;
    XSalsa20Poly1305::new(&key)
        .decrypt(&Nonce::from(nonce), &*decode(&ciphertext)?)
        .map_err(|_| DecryptError::WrongPassword)
}

/// The parameters, within limits: a key file could demand any amount of memory and time.
fn scrypt_params(cost: &ScryptCost) -> Option<Params> {
    // the table of N blocks, the p blocks to mix, and one block of working memory
    let blocks = cost.n.checked_add(u64::from(cost.p) + 1)?;
    let memory = blocks.checked_mul(u64::from(cost.r))?.checked_mul(128)?;
    if !cost.n.is_power_of_two() || memory > MAX_MEMORY || cost.p > MAX_PARALLEL {
        return None;
    }
    let log_n = u8::try_from(cost.n.trailing_zeros()).ok()?;
    Params::new(log_n, cost.r, cost.p, 32).ok()
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
            assert_eq!(
                error,
                Some(not_decrypted(DecryptError::Malformed)),
                "{body}"
            );
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
        assert_eq!(decrypt(&pem, b""), Err(DecryptError::WrongPassword));
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
                Err(DecryptError::ScryptParameters),
                "{cost:?}"
            );
        }
        let label = LABELS[1];
        let pem = format!("-----BEGIN {label}-----\ne30=\n-----END {label}-----\n");
        assert!(is_encrypted(&pem) && decrypt(&pem, b"") == Err(DecryptError::Malformed));
    }
}
